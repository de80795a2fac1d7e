"""One module or package per technology; each is imported only when it is chosen."""
