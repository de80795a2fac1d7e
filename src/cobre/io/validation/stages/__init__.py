"""Checks of the horizon: dates, blocks, policy graph, stopping rules, stored policies."""
