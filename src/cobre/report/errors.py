"""Errors that keep a report from being written."""

from cobre.errors import CobreError


class ReportError(CobreError):
    """A report cannot be made or written; the words say what is wrong and what would be right."""


class ReportNotWrittenError(ReportError):
    """There is a report, and no place for it."""


# What wrong types and values in files of a run raise. A report is no reason for a run to fail.
MALFORMED_DATA = (ArithmeticError, LookupError, TypeError, ValueError)
