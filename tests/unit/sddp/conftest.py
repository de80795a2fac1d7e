"""Small systems and ways to solve them, importable from the folders below."""
