"""Errors of making a report."""

from cobre.errors import CobreError


class ReportError(CobreError):
    """A report cannot be made or written; the message says why and what to do."""


class ReportNotWrittenError(ReportError):
    """The report was made, but its file could not be written."""


# Raised by wrong types and values in the files of a run, which must not make the report fail.
MALFORMED_DATA = (ArithmeticError, LookupError, TypeError, ValueError)
