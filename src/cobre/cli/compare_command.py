"""`cobre compare`: two runs, to the last bit and in money."""

import sys
from pathlib import Path

from cobre.cli.echo import echo, echo_json
from cobre.cli.error_reporting import report_errors
from cobre.cli.exit_codes import DIFFERENT, ExitCode


def compare(first: Path, second: Path, *, html: Path | None, is_bits_only: bool, as_json: bool) -> None:
    """Say whether two runs are identical, or where they first differ; then what changed in money."""
    from cobre.comparison.api import compare_folders
    from cobre.comparison.result import StudyComparison
    from cobre.runs.bit_comparison import compare_runs

    with report_errors():
        if is_bits_only:
            bits = compare_runs(first, second)
            comparison = StudyComparison((str(first), str(second)), bits, None)
        else:
            comparison = compare_folders(first, second)
        if html is not None:
            comparison.write_html(html)
    echo_json(comparison.as_dict()) if as_json else echo(comparison)
    sys.exit(ExitCode.SUCCESS if comparison.is_identical else DIFFERENT)
