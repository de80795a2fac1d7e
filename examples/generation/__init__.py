"""Generation of the example cases: a system, a horizon and a few settings, written in the case format."""
