"""Checks that need more than one file: references, dimensions, meaning. A module for each story of the input."""

from cobre.io.validation.check import check_case

__all__ = ["check_case"]
