"""A complete run in one call, under the name that scripts for cobre-python use."""

from cobre.compat.run import run

__all__ = ["run"]
