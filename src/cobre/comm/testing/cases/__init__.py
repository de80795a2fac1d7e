"""The cases, one module per subject. Importing this package registers all of them."""

from cobre.comm.testing.cases import arguments, collectives, failures, lifecycle, regions, sequences

__all__ = ["arguments", "collectives", "failures", "lifecycle", "regions", "sequences"]
