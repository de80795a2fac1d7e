"""Plausibility of a case that could be run: warnings with their numbers; and errors that only numbers show."""

from cobre.study.plausibility.rules import check_generic_numbers, check_plausibility, finding_of_note

__all__ = ["check_generic_numbers", "check_plausibility", "finding_of_note"]
