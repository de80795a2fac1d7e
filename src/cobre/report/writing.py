"""Write the report of an output directory."""

from pathlib import Path

from cobre.io.storage.atomic import WriteError, write_file
from cobre.report.errors import MALFORMED_DATA, ReportError, ReportNotWrittenError
from cobre.report.page import page_of
from cobre.report.run_folder import read_run


def write(folder: Path, target: Path, *, is_full: bool = False) -> tuple[str, ...]:
    """Write the report of `folder` to `target`, which is replaced completely or not at all.

    Returns a sentence for each damaged file of results, whose content the report leaves out. Raises ReportError for
    malformed files, ReportNotWrittenError if `target` cannot be written.
    """
    try:
        run = read_run(folder)
        page = page_of(run, is_full=is_full)
    except MALFORMED_DATA as error:
        message = f"{folder} holds something that `cobre run` does not write: {type(error).__name__}: {error}"
        raise ReportError(message) from error
    try:
        write_file(target, page.encode())
    except WriteError as error:
        raise ReportNotWrittenError(str(error)) from error
    return run.damaged
