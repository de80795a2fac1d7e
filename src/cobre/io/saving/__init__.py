"""Writing a case to a directory in the current format, the inverse of `cobre.io.case`."""

from cobre.io.saving.case_writer import save_case

__all__ = ["save_case"]
