"""The report of a run as one HTML file, and figures for notebooks. Reads files and tables alone, nothing of SDDP."""

from pathlib import Path

from cobre.report.errors import ReportError

__all__ = ["ReportError", "write_report"]


def write_report(folder: Path, target: Path | None = None, *, is_full: bool = False) -> Path:
    """Write the report of an output directory to `target` (FOLDER/report.html), and say where it is.

    is_full: with every scenario of every plant, bus and line, which can take many megabytes.

    A run that goes on, or that was interrupted, gets the report of what is there. Raises ReportError.
    """
    from cobre.report.writing import write  # noqa: PLC0415 - NumPy is not loaded before it is used
    from cobre.runs.files import REPORT_FILE  # noqa: PLC0415

    return write(folder, target or folder / REPORT_FILE, is_full=is_full)
