"""Preparation of studies: from a case to LPs and a solver on all ranks."""
