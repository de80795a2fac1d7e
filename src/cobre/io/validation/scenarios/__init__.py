"""Checks of what is random: inflows, loads, correlation, openings, histories."""
