"""Plausibility of a valid case: warnings with numbers, and errors that only computed numbers show."""

from cobre.study.plausibility.rules import check_generic_numbers, check_plausibility, finding_of_note

__all__ = ["check_generic_numbers", "check_plausibility", "finding_of_note"]
