"""Enumerated scenario trees: nodes, paths and probabilities, and how they are built from a case."""
