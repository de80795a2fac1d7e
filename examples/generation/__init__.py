"""How the example cases are made: a system, a horizon and a few settings, written in the case format."""
