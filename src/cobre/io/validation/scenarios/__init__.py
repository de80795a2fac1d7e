"""Checks of random data: inflows, loads, correlation, openings, histories."""
