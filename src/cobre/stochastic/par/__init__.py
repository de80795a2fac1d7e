"""Periodic autoregressive models of inflows: definition, fitting, initial lags."""
