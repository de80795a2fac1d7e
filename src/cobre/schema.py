"""JSON Schemas of the files of a case, under the name that scripts for cobre-python use."""

from cobre.compat.schema import export

__all__ = ["export"]
