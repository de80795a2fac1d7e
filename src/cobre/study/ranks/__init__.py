"""What ranks are started with, and what each of them does for a script."""
