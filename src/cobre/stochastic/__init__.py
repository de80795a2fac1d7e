"""Noise and the models that turn it into inflows, loads and availabilities."""
