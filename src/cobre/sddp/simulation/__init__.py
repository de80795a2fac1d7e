"""A policy in many scenarios: follow it, read the LPs' solutions as tables, hand the rows to a sink."""
