"""Commands that read the results of runs: `top`, `report`, `bound`, `compare`, `export` and `explain`."""

import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from cobre.cli.error_reporting import DIFFERENT, ExitCode, fail, report_errors
from cobre.cli.setting_options import CASE, FiniteRange, IntegerRange, OutputPath, RunPath, world_options
from cobre.cli.standard_streams import echo, echo_json
from cobre.core.bounds import DEFAULT_CONFIDENCE, DEFAULT_MAX_NODES, DEFAULT_PATHS, BoundMethod, BoundMethodName
from cobre.core.file_names import POLICY
from cobre.errors import install_command
from cobre.limits import MAX_COUNT
from cobre.text import counted

if TYPE_CHECKING:
    from cobre.runs.events import EventFollower


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
    from cobre.cli.run_output import can_draw
    from cobre.runs.events import EventFollower

    with report_errors():
        follower = EventFollower(folder)
        follower.check()
    if not (sys.stdin.isatty() and sys.stderr.isatty() and can_draw(sys.stdout)):
        _print_once(folder, follower)
        return
    with _requires_live_view():
        from cobre.tui.app import watch
    watch(folder)


@contextmanager
def _requires_live_view() -> Iterator[None]:
    """Exit with the code for a missing extra if the libraries of the live view are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "textual_plotext", "plotext"):
            raise
        fail(f"the live view is not installed: {install_command('[top]')}", ExitCode.MISSING_EXTRA)


def _print_once(folder: Path, follower: "EventFollower") -> None:
    """Print the current state of a run as plain text."""
    from cobre.core.file_names import EVENT_FILE
    from cobre.runs.view import view_of

    with _requires_live_view():
        from cobre.tui.panels import plain_panels
    with report_errors():
        view = view_of(follower.read_new())
    echo(plain_panels(view, folder))
    if follower.damaged_lines:
        echo(f"warning: {counted(follower.damaged_lines, 'line')} of {folder / EVENT_FILE} cannot be read", err=True)


@click.command()
@click.argument("path", type=RunPath())
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def explain(path: Path, as_json: bool) -> None:
    """Explain, in planning terms, why a stage could not be solved.

    PATH is an LP that a run saved (DIR/failures/*.mps), or the output directory of the run, whose newest LP is used.
    The LP is solved again, and a smallest set of limits and balances that contradict each other is listed.

    \b
    Examples:
      cobre explain results
      cobre explain results/failures/iteration3-stage5-rank0.mps
    """
    from cobre.runs.explanation import explain_failure

    with report_errors():
        explanation = explain_failure(path)
    echo_json(explanation.as_dict()) if as_json else echo(explanation)


@click.command()
@click.argument("folder", metavar="DIR", type=RunPath())
@click.option("--output", "-o", type=OutputPath(), help="The file to write. Default: DIR/report.html.")
@click.option(
    "--full", "is_full", is_flag=True, help="Include every scenario of every plant, bus and line (a large file)."
)
@click.option("--open", "open_browser", is_flag=True, help="Open the report in the browser.")
def report(folder: Path, output: Path | None, is_full: bool, open_browser: bool) -> None:
    """Write a report of the run in DIR: one HTML file that works offline.

    Every plant, bus and line can be found by name, with percentiles over all scenarios and three single scenarios.
    A run that is still in progress, or was interrupted, gets a report of the results so far.

    \b
    Examples:
      cobre report results
      cobre report results --output report.html --open
      cobre report results --full --output all-scenarios.html
    """
    from cobre.report.document import write_report
    from cobre.report.run_folder import ReportError, ReportNotWrittenError
    from cobre.runs.trained_case import changed_case

    damaged: list[str] = []
    with report_errors():
        try:
            written = write_report(folder, output, is_full=is_full, on_damage=damaged.extend)
        except ReportNotWrittenError as error:
            fail(str(error), ExitCode.OUTPUT)
        except ReportError as error:
            fail(str(error), ExitCode.RESULTS)
        else:
            echo(str(written))
            if (changed := changed_case(folder)) is not None:
                echo(f"note: {changed}; the report shows the case as it was", err=True)
            if open_browser:
                webbrowser.open(written.resolve().as_uri())
            if damaged:
                remedy = "restore these files from a copy, or run the study again"
                fail(f"the report leaves out what is damaged: {'; '.join(damaged)} ({remedy})", ExitCode.RESULTS)


@click.command()
@click.argument("folder", metavar="CASE|RUN", type=RunPath())
@click.option("--policy", "-p", type=RunPath(), help="A policy file, or the folder of one or of a run.")
@click.option("--case", "moved_to", type=CASE, help="Where the case of RUN is now, if it has moved.")
@click.option(
    "--method",
    type=click.Choice(get_args(BoundMethodName)),
    default=BoundMethod.AUTO.value,
    show_default=True,
    help="The method; see above.",
)
@click.option(
    "--paths",
    type=IntegerRange(2, MAX_COUNT),
    default=DEFAULT_PATHS,
    show_default=True,
    help="Number of sampled paths.",
)
@click.option(
    "--confidence",
    type=FiniteRange(min=0.0, max=1.0, min_open=True, max_open=True),
    default=DEFAULT_CONFIDENCE,
    show_default=True,
    help="Confidence level of a sampled estimate.",
)
@click.option(
    "--max-nodes",
    type=IntegerRange(min=1),
    default=DEFAULT_MAX_NODES,
    show_default=True,
    help="Maximum number of tree nodes to enumerate.",
)
@click.option(
    "--seed", type=IntegerRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of the sampled paths."
)
@world_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def bound(folder: Path, policy: Path | None, moved_to: Path | None, as_json: bool, **options: Any) -> None:
    """Compute an upper bound for a policy, or estimate its cost, under its risk measure.

    RUN is the output directory of a run. With a CASE, give its policy (--policy), unless CASE/output holds one. The
    result is written to the run's bound.json and shown in its report.

    If the case has changed since training, the command fails: a bound of another problem would be wrong.

    \b
    Methods:
      enumeration  every path of the opening tree: the exact cost of the policy
      inner        an inner approximation of the cost-to-go: deterministic,
                   for few state variables
      sampled      paths drawn by the weights of the risk measure: an estimate
                   with a confidence interval; under a risk measure it is from
                   below, and not a bound
      auto         the first of these that the size of the study allows

    \b
    Examples:
      cobre bound results
      cobre bound results --method sampled --paths 1000
      cobre bound my_case --policy results/policy --json
    """
    from cobre.runs.events import Event
    from cobre.study.bound import bound_in, bound_plan, bound_request
    from cobre.study.placement import WorldRequest, script_placement

    if policy is not None and moved_to is not None:
        raise click.UsageError("--case locates the case of a RUN; with --policy give the case itself as CASE")
    events: list[Event] = []
    with report_errors():
        placement = script_placement(WorldRequest(options["backend"], options["workers"], options["threads"]))
        plan = bound_plan(*(options[name] for name in ("method", "paths", "confidence", "max_nodes", "seed")))
        request = bound_request(folder, policy, plan, placement.threads, moved_to)
        result = bound_in(placement, request, events.append)
    if events:  # only rank 0 of several has events
        echo_json(result.as_dict()) if as_json else echo(result)


@click.command()
@click.argument("run_a", type=RunPath())
@click.argument("run_b", type=RunPath())
@click.option("--html", type=OutputPath(), metavar="FILE", help="Also write a page with charts and tables.")
@click.option("--bits", "is_bits_only", is_flag=True, help="Compare bits only.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def compare(run_a: Path, run_b: Path, html: Path | None, is_bits_only: bool, as_json: bool) -> None:
    """Show what changed between two runs, in bits, money, energy and water.

    The first line is about bits: `identical` and a digest of bounds, cuts, policy file and simulation, or the first
    difference with both values. Then come the means of both simulations and the difference B - A, with its 95 %
    confidence interval over common scenarios: cost and its components, marginal costs, generation by source, deficit,
    storage, spillage and water values, in total, by stage, and by plant and bus. The studies may have different plants
    and stages: those that only one of them has are listed. Memory does not grow with the number of scenarios.

    Exit code: 0 if the bits are identical, 1 if they differ, 8 if a directory has no complete results.

    \b
    Examples:
      cobre compare results results-one-plant-more
      cobre compare results results-one-plant-more --html changes.html
      cobre compare results-2-workers results-16-workers --bits
      cobre compare before after --json
    """
    from cobre.comparison.result import StudyComparison, compare_folders
    from cobre.runs.bit_comparison import compare_runs

    with report_errors():
        if is_bits_only:
            bits = compare_runs(run_a, run_b)
            comparison = StudyComparison((str(run_a), str(run_b)), bits, None)
        else:
            comparison = compare_folders(run_a, run_b)
        if html is not None:
            comparison.write_html(html)
    echo_json(comparison.as_dict()) if as_json else echo(comparison)
    sys.exit(ExitCode.SUCCESS if comparison.is_identical else DIFFERENT)


LAYOUTS = ("cobre-python", "novomodelo")
EXPORT_FORMATS = ("csv", "xlsx", "netcdf", "duckdb", *LAYOUTS)


@click.command()
@click.argument("run", type=RunPath())
@click.option("--to", "export_format", type=click.Choice(EXPORT_FORMATS), help="The format; see above.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="The same as --to.")
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Export only this table. Can be given several times."
)
@click.option(
    "--output", "-o", type=OutputPath(), help="The new file or directory. Default: RUN-csv, RUN.xlsx and so on."
)
@click.option(
    "--case",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the case of RUN is now, if it has moved.",
)
def export(
    run: Path,
    export_format: str | None,
    layout: str | None,
    tables: tuple[str, ...],
    output: Path | None,
    case: Path | None,
) -> None:
    """Export the results of RUN for other programs.

    \b
    Formats:
      csv           a directory with a file for each table
      xlsx          an Excel workbook with a sheet for each table, of at most
                    1,048,575 rows; needs pip install 'pycobre[excel]'
      netcdf        a NetCDF file, for example for xarray;
                    needs pip install 'pycobre[netcdf]'
      duckdb        a database file, for SQL queries;
                    needs pip install 'pycobre[duckdb]'
      cobre-python  the directories and files of cobre-python 0.18, as its
                    scripts and cobre-bridge read them; needs the case of RUN
      novomodelo    the same for novomodelo 0.19 and novomodelo-bridge

    The tables are those of RUN/training and RUN/simulation, and two more: `stages` with dates and `entities` with
    names. Existing files are not replaced.

    \b
    Examples:
      cobre export results --to csv
      cobre export results --to xlsx --table costs --output costs.xlsx
      cobre export results --to duckdb && duckdb results.duckdb
      cobre export results --to cobre-python --output my_case/output
    """
    from cobre.export import export_run

    if (chosen_format := export_format or layout) is None or (export_format and layout and export_format != layout):
        raise click.UsageError(f"choose a format with --to: {', '.join(EXPORT_FORMATS)}")
    with report_errors():
        target = export_run(run, output, chosen_format, case, tables)
        if chosen_format in LAYOUTS and not (Path(target) / POLICY).exists():
            text = f"warning: the policy is left out: {chosen_format} keeps cuts of a graph of nodes in another way"
            echo(text, err=True)
        echo(target)
