"""A case as numbers: for each stage arrays in canonical order, with every override, price and season applied."""

from cobre.sddp.resolved.resolve import resolve

__all__ = ["resolve"]
