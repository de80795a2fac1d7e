"""Errors that keep a report from being written."""

from cobre.errors import CobreError


class ReportError(CobreError):
    """A report cannot be made or written; the words say what is wrong and what would be right."""


class ReportNotWrittenError(ReportError):
    """The report was made, but its file could not be written."""


# What wrong types and values in files of a run raise. A report is no reason for a run to fail.
MALFORMED_DATA = (ArithmeticError, LookupError, TypeError, ValueError)
