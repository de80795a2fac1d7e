"""Is a case plausible? Warnings, each with its numbers, about a case that could be run. And errors of its numbers."""

from cobre.study.plausibility.layer import check_generic_numbers, check_plausibility

__all__ = ["check_generic_numbers", "check_plausibility"]
