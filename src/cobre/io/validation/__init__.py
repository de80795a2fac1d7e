"""Checks that need more than one file: references, dimensions, meaning."""

from cobre.io.validation.layers import check_case

__all__ = ["check_case"]
