"""The case directory: its files and their schemas, and new cases from others."""
