"""A policy in many scenarios: walk them, read the LPs' solutions as tables, hand the rows to a sink."""
