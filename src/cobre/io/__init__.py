"""Reading and writing: case directories, policies, results."""
