"""The input files of a case, one module each."""
