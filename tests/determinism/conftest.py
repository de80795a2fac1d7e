"""Puts this folder on the path, for the tests below it."""
