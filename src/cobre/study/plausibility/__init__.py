"""Is a case plausible? Warnings, each with its numbers, about a case that could be run."""

from cobre.study.plausibility.layer import check_plausibility

__all__ = ["check_plausibility"]
