"""Periodic autoregressive models of inflows: what they are, how they are fitted, where they start."""
