"""A policy in many scenarios, with rows in memory or in files."""
