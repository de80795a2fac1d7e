"""Checks of tables: references, dimensions, overridden bounds."""
