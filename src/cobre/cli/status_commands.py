"""Commands that look at what a run left or leaves: `top` and `explain`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cobre.cli.echo import echo, echo_json
from cobre.cli.error_reporting import fail, report_errors
from cobre.cli.exit_codes import ExitCode
from cobre.cli.progress import can_draw
from cobre.cli.run_path import RunPath
from cobre.errors import install_command
from cobre.wording import counted

if TYPE_CHECKING:
    from cobre.runs.event_follower import EventFollower


@click.command()
@click.argument("folder", metavar="DIR", type=RunPath())
def top(folder: Path) -> None:
    """Watch the run in the output directory DIR, or look at it afterwards.

    Shows the bounds, time by phase, the load of each rank, and messages. It only reads: quitting does not stop the run.
    In a pipe, or on a terminal without cursor control, it prints the current state once.

    \b
    Examples:
      cobre top results
      ssh cluster -t cobre top /scratch/results
    """
    from cobre.runs.event_follower import EventFollower

    with report_errors():
        follower = EventFollower(folder)
        follower.check()
    if not (sys.stdin.isatty() and sys.stderr.isatty() and can_draw(sys.stdout)):
        _print_once(folder, follower)
        return
    try:
        from cobre.tui.app import watch
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "textual_plotext", "plotext"):
            raise
        fail(f"the live view is not installed: {install_command('[top]')}", ExitCode.MISSING_EXTRA)
    watch(folder)


def _print_once(folder: Path, follower: "EventFollower") -> None:
    """Print the present state of a run once, for pipes."""
    from cobre.runs.files import EVENT_FILE
    from cobre.runs.view import view_of
    from cobre.tui.panels import page

    with report_errors():
        view = view_of(follower.read_new())
    echo(page(view, folder))
    if follower.damaged_lines:
        echo(f"warning: {counted(follower.damaged_lines, 'line')} of {folder / EVENT_FILE} cannot be read", err=True)


@click.command()
@click.argument("path", type=RunPath())
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def explain(path: Path, as_json: bool) -> None:
    """Explain, in planning terms, why a stage could not be solved.

    PATH is an LP that a run saved (OUT/failures/*.mps), or an output directory, of which the newest LP is used. The LP
    is solved again, and a smallest set of limits and balances that contradict each other is listed.

    \b
    Examples:
      cobre explain results
      cobre explain results/failures/iteration3-stage5-rank0.mps
    """
    from cobre.runs.explanation import explain_failure

    with report_errors():
        explanation = explain_failure(path)
    echo_json(explanation.as_dict()) if as_json else echo(explanation)
