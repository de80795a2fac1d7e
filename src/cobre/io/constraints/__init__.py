"""Generic constraints of a case: their expressions, parameters and bounds."""
