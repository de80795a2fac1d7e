"""`cobre report`: one HTML file about an output directory."""

import webbrowser
from pathlib import Path

from cobre.cli.echo import echo
from cobre.cli.error_reporting import fail, report_errors
from cobre.cli.exit_codes import ExitCode


def report_run(folder: Path, target: Path | None, *, is_full: bool, is_to_be_opened: bool) -> None:
    """Write the report of a run and print its path; files of results that are damaged are an error afterwards."""
    from cobre.report import ReportError, write_report
    from cobre.report.errors import ReportNotWrittenError
    from cobre.runs.trained_case import changed_case

    damaged: list[str] = []
    with report_errors():
        try:
            written = write_report(folder, target, is_full=is_full, on_damage=damaged.extend)
        except ReportNotWrittenError as error:
            fail(str(error), ExitCode.OUTPUT)
        except ReportError as error:
            fail(str(error), ExitCode.RESULTS)
        else:
            echo(str(written))
            if (changed := changed_case(folder)) is not None:
                echo(f"note: {changed}; the report shows the case as it was", err=True)
            if is_to_be_opened:
                webbrowser.open(written.resolve().as_uri())
            if damaged:
                remedy = "restore these files from a copy, or run the study again"
                fail(f"the report leaves out what is damaged: {'; '.join(damaged)} ({remedy})", ExitCode.RESULTS)
