"""The report of a run as one HTML file, and figures for notebooks. It reads only files and tables."""

from collections.abc import Callable, Sequence
from pathlib import Path

from cobre.report.run_folder import ReportError

__all__ = ["ReportError", "write_report"]


def write_report(
    folder: Path,
    target: Path | None = None,
    *,
    is_full: bool = False,
    on_damage: Callable[[Sequence[str]], None] | None = None,
) -> Path:
    """Write the report of an output directory to `target` (default: FOLDER/report.html); returns its path.

    is_full: with every scenario of every plant, bus and line, which can take many megabytes.

    on_damage: called with a sentence for each damaged file of results, after the report without them was written (it
    names them, too).

    For a running or interrupted run, the report shows the results so far. Raises ReportError if `folder` is not an
    output directory or the report cannot be written.
    """
    from cobre.report.document import write  # noqa: PLC0415 - NumPy is not loaded before it is used
    from cobre.runs.files import REPORT_FILE  # noqa: PLC0415

    path = target or folder / REPORT_FILE
    damaged = write(folder, path, is_full=is_full)
    if damaged and on_damage is not None:
        on_damage(damaged)
    return path
