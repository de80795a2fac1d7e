"""`cobre run` and `cobre simulate`, as the command line has them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from cobre.cli.error_reporting import ExitCode, fail, report_errors
from cobre.cli.progress import can_draw
from cobre.cli.setting_options import CASE, FiniteRange, OutputPath, RunPath, set_option, study_options
from cobre.cli.standard_streams import echo, echo_json
from cobre.core.bounds import DEFAULT_CONFIDENCE, DEFAULT_MAX_NODES, DEFAULT_PATHS, BoundMethod, BoundMethodName
from cobre.errors import install_command
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, DEFAULT_CHECKPOINT_SECONDS
from cobre.wording import MAX_COUNT, MAX_THREADS, counted

if TYPE_CHECKING:
    from cobre.runs.events import EventFollower


# Also in the docstring of `cobre.train`.
AUTO_BACKEND = (
    "auto: as COBRE_COMM_BACKEND says; otherwise as mpiexec, srun or the COBRE_TCP_* or COBRE_SHM_* variables that "
    "started this process say; otherwise shm, or local for one process."
)


Command = TypeVar("Command", bound=Callable[..., Any])


class BackendName(click.Choice[str]):
    """One of our own backends, or one that another distribution registers, which is looked up only when it is named."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept the names of registered backends, too."""
        if value not in self.choices:
            from cobre.comm.factory import registered_names

            if value in registered_names():
                return value
        return super().convert(value, param, ctx)


def world_options(command: Command) -> Command:
    """Options for backend, workers and threads."""
    for decorate in reversed(
        (
            click.option(
                "--workers",
                type=click.IntRange(min=1),
                help="Number of processes. By default one, with a thread per usable core; for scenario trees, and "
                "with --backend shm or tcp, one per usable core, but at most one per forward pass or scenario.",
            ),
            click.option(
                "--backend",
                type=BackendName(["auto", "local", "shm", "tcp", "mpi"]),
                default="auto",
                help=f"How workers communicate. {AUTO_BACKEND}",
            ),
            click.option(
                "--threads",
                type=click.IntRange(min=1, max=MAX_THREADS),
                help="Threads per worker. By default the cores are divided among workers.",
            ),
        )
    ):
        command = decorate(command)
    return command


def _display_options(command: Command) -> Command:
    """What is said while it runs and in the end."""
    for decorate in reversed(
        (
            click.option("--plain", is_flag=True, help="Print one line per iteration, also on a terminal."),
            click.option("--quiet", "-q", is_flag=True, help="Print only warnings and errors."),
            click.option("--no-report", is_flag=True, help="Do not write report.html."),
            click.option("--no-cache", is_flag=True, help="Prepare the case again, and keep nothing of it."),
            click.option(
                "--json", "as_json", is_flag=True, help="Print a JSON object, and nothing else, to standard output."
            ),
        )
    ):
        command = decorate(command)
    return command


@click.command()
@click.argument("case", type=CASE)
@click.option(
    "--output", "-o", type=OutputPath(is_directory=True), help="Directory for the results. Default: CASE/output."
)
@study_options
@world_options
@click.option("--resume", is_flag=True, help="Continue from the newest checkpoint in the output directory.")
@click.option(
    "--auto-resume", is_flag=True, help="Like --resume if there is a checkpoint; otherwise start from the beginning."
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier run in the output directory.")
@click.option("--warm-start", type=click.Path(exists=True, path_type=Path), help="Start with the cuts of this policy.")
@click.option(
    "--boundary",
    type=click.Path(exists=True, path_type=Path),
    help="Value the end of the study by the policy of another run, instead of policy.boundary in config.json. Plants "
    "are matched by name where the two cases number them differently.",
)
@click.option(
    "--time-limit",
    type=FiniteRange(min=0.0),
    help="Stop after the iteration in which this many seconds have passed; an iteration that lasts five seconds longer "
    "is dropped.",
)
@click.option(
    "--checkpoint-every",
    type=click.IntRange(0, MAX_COUNT),
    help=f"Iterations between checkpoints. Default: {DEFAULT_CHECKPOINT_INTERVAL}; 0: only after the last iteration.",
)
@click.option(
    "--checkpoint-minutes",
    type=FiniteRange(min=0.0, min_open=True),
    help=f"Longest time between checkpoints, in minutes. Default: {DEFAULT_CHECKPOINT_SECONDS / 60:g}.",
)
@_display_options
def run(case: Path, **options: Any) -> None:
    """Train a policy for CASE, simulate it, and write the results.

    The simulation is run if the case asks for it. A terminal shows a live table; a pipe or a log gets one line per
    iteration; `cobre top` watches the run from another terminal. Ctrl-C and SIGTERM stop all workers after the current
    iteration and keep the policy. A second Ctrl-C drops the iteration and keeps the policy of the one before, and so
    does SIGTERM five seconds after it came. Progress output that cannot be written, for example to a full disk, does
    not stop the run.

    --set changes any setting of config.json for this run, by its name in the file with dots between. Changed settings
    are checked like those of the file, and recorded in study.json; the case stays as it is.

    If the output directory already holds a run, --resume, --auto-resume or --overwrite must say what to do with it.

    \b
    Examples:
      cobre run examples/two_reservoirs
      cobre run my_case --output results --iterations 50 --workers 4
      cobre run my_case --output trial --iterations 3 --forward-passes 4 --no-simulation
      cobre run my_case --output other --seed 7 --set modeling.inflow_non_negativity.method=truncation
      cobre run my_case --output results --resume
      cobre run my_case --quiet --json > summary.json
      cobre run weekly_case --boundary monthly_case/output
      mpiexec -n 16 cobre run my_case --output results
    """
    from cobre.cli.run_command import RunOptions, run_case

    for name in ("resume", "auto_resume"):
        if options[name] and options["overwrite"]:
            raise click.UsageError(f"--{name.replace('_', '-')} and --overwrite exclude each other")
    run_case(RunOptions.of(case, options))


@click.command()
@click.argument("case", type=CASE)
@click.option(
    "--policy",
    "-p",
    type=RunPath(),
    required=True,
    help="A policy file, or the folder of one or of a run.",
)
@click.option("--output", "-o", type=OutputPath(is_directory=True), required=True, help="Directory for the results.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier simulation in the output directory.")
@click.option("--scenarios", type=click.IntRange(1, MAX_COUNT), help="Number of scenarios. Default: that of the case.")
@set_option
@world_options
@_display_options
def simulate(case: Path, **options: Any) -> None:
    """Simulate a stored policy on CASE, without training.

    The policy may come from a run with other loads, inflows or costs, which prints a warning. It must have the same
    stages and state variables.

    \b
    Examples:
      cobre simulate my_case --policy results/policy --output results-2000 --scenarios 2000
      cobre simulate dry_year --policy results/policy/policy.bin --output dry --workers 4
    """
    from cobre.cli.run_command import RunOptions, run_case

    run_case(RunOptions.of_simulation(case, options))


# `cobre bound`: is the policy as good as the lower bound says, under the risk measure of the study?


@click.command()
@click.argument("folder", metavar="CASE|RUN", type=RunPath())
@click.option("--policy", "-p", type=RunPath(), help="A policy file, or the folder of one or of a run.")
@click.option("--case", "moved_to", type=CASE, help="Where the case of RUN is now, if it has moved.")
@click.option(
    "--method",
    type=click.Choice(get_args(BoundMethodName)),
    default=BoundMethod.AUTO.value,
    show_default=True,
    help="Method; see above.",
)
@click.option(
    "--paths",
    type=click.IntRange(2, MAX_COUNT),
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
    type=click.IntRange(min=1),
    default=DEFAULT_MAX_NODES,
    show_default=True,
    help="Largest number of tree nodes to enumerate.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of the sampled paths.")
@world_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def bound(folder: Path, policy: Path | None, moved_to: Path | None, as_json: bool, **options: Any) -> None:
    """Compute an upper bound for a policy, or estimate its cost, under its risk measure.

    RUN is the output directory of a run. With a CASE, give its policy (--policy), unless CASE/output holds one. The
    result is written to the run's bound.json and shown in its report.

    If the case has changed since training the command stops with an error: bounds of another problem would be wrong.

    \b
    Methods:
      enumeration  the policy on every path of the opening tree: its exact cost
      inner        inner approximation of the cost-to-go: deterministic, for few state variables
      sampled      paths drawn by the weights of the risk measure: an estimate and its confidence;
                   under a risk measure it comes from below, and is not a bound
      auto         the first of these that the size of the study allows

    \b
    Examples:
      cobre bound results
      cobre bound results --method sampled --paths 1000
      cobre bound my_case --policy results/policy --json
    """
    from cobre.runs.events import Event
    from cobre.study.inspection.bound import bound_in, bound_plan, bound_request
    from cobre.study.placement import WorldRequest, script_placement

    if policy is not None and moved_to is not None:
        raise click.UsageError("--case says where the case of a RUN is; with --policy give the case itself as CASE")
    events: list[Event] = []
    with report_errors():
        placement = script_placement(WorldRequest(options["backend"], options["workers"], options["threads"]))
        plan = bound_plan(*(options[name] for name in ("method", "paths", "confidence", "max_nodes", "seed")))
        request = bound_request(folder, policy, plan, placement.threads, moved_to)
        found = bound_in(placement, request, events.append)
    if events:  # of several ranks the first one speaks
        echo_json(found.as_dict()) if as_json else echo(found)


# Commands that look at what a run left or leaves: `top` and `explain`.


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
    from cobre.runs.events import EventFollower

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
