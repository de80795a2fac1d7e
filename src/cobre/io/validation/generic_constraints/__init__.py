"""Checks of generic constraints: references, dimensions, meaning."""
