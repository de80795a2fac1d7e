"""Trained policies: the object that scripts use, its file, and its use as the boundary policy of another study."""
