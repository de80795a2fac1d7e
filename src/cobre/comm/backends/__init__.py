"""The backends, one module or package each; imported only when chosen."""
