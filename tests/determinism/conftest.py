"""Puts this folder on the path: the matrix is a program, too."""
