"""`cobre run` and `cobre simulate`, from the command line to the summary."""

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cobre.cli.error_reporting import ExitCode, mark_errors_of_rank, report_errors
from cobre.cli.setting_options import (
    CASE,
    FiniteRange,
    IntegerRange,
    OutputPath,
    RunPath,
    combine_options,
    overrides_of,
    set_option,
    study_options,
    world_options,
)
from cobre.cli.standard_streams import echo_json, mark_output_as_optional
from cobre.limits import MAX_COUNT
from cobre.study.requests import (
    DEFAULT_CHECKPOINT_INTERVAL,
    DEFAULT_CHECKPOINT_SECONDS,
    CaseRequest,
    RunRequest,
    TrainingRequest,
)
from cobre.text import printable

if TYPE_CHECKING:
    from cobre.comm import Backend
    from cobre.runs.events import EventListener
    from cobre.runs.summary import RunSummary

_display_options = combine_options(
    click.option("--plain", is_flag=True, help="Print one line per iteration, also on a terminal."),
    click.option("--quiet", "-q", is_flag=True, help="Print only warnings and errors."),
    click.option("--no-report", is_flag=True, help="Do not write report.html."),
    click.option("--no-cache", is_flag=True, help="Do not use the prepared-case cache."),
    click.option("--json", "as_json", is_flag=True, help="Print a JSON object, and nothing else, to standard output."),
)


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
    "are matched by name if the two cases number them differently.",
)
@click.option(
    "--time-limit",
    type=FiniteRange(min=0.0),
    help="Stop after the iteration in which this many seconds have passed; an iteration that lasts five seconds longer "
    "is dropped.",
)
@click.option(
    "--checkpoint-every",
    type=IntegerRange(0, MAX_COUNT),
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

    The policy is simulated if the case asks for it. A terminal shows a live table; a pipe or a log gets one line per
    iteration; `cobre top` watches the run from another terminal. Progress output that cannot be written, for example
    to a full disk, does not stop the run.

    Ctrl-C and SIGTERM stop all workers after the current iteration and keep the policy. A second Ctrl-C drops the
    current iteration and keeps the policy of the one before; so does SIGTERM if the iteration takes more than five
    more seconds.

    --set changes any setting of config.json for this run. Its name is the path of names in the file, joined by dots.
    Changed settings are checked like those of the file, and recorded in study.json; the case is not changed. An object
    changes only the fields that it names, unless its method or type differs from the file's: then it replaces the
    whole object. A list replaces the list.

    If the output directory already holds a run, choose between --resume, --auto-resume and --overwrite.

    \b
    Examples:
      cobre run examples/two_reservoirs
      cobre run my_case --output results --iterations 50 --workers 4
      cobre run my_case --output trial --iterations 3 --no-simulation
      cobre run my_case --output other --set training.tree_seed=7
      cobre run my_case --output results --resume
      cobre run my_case --quiet --json > summary.json
      cobre run weekly_case --boundary monthly_case/output
      mpiexec -n 16 cobre run my_case --output results
    """
    for name in ("resume", "auto_resume"):
        if options[name] and options["overwrite"]:
            raise click.UsageError(f"--{name.replace('_', '-')} and --overwrite exclude each other")
    minutes = options["checkpoint_minutes"]
    training = TrainingRequest(
        resume=options["resume"],
        resume_if_possible=options["auto_resume"],
        warm_start=options["warm_start"],
        time_limit_s=options["time_limit"],
        checkpoint_every=options["checkpoint_every"],
        checkpoint_seconds=None if minutes is None else 60.0 * minutes,
    )
    source = CaseRequest(case, overrides_of(options) or None, use_cache=not options["no_cache"])
    _run(RunRequest(source, options["output"] or default_output(case), training, options["overwrite"]), options)


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
@click.option("--scenarios", type=IntegerRange(1, MAX_COUNT), help="Number of scenarios. Default: that of the case.")
@set_option
@world_options
@_display_options
def simulate(case: Path, **options: Any) -> None:
    """Simulate a stored policy on CASE, without training.

    A policy trained with other loads, inflows or costs is accepted with a warning. It must have the same stages and
    state variables.

    \b
    Examples:
      cobre simulate my_case --policy results --output more --scenarios 2000
      cobre simulate dry_year --policy results/policy --output dry --workers 4
    """
    overrides = {"training.enabled": False, "simulation.enabled": True, **overrides_of(options)}
    source, training = CaseRequest(case, overrides), TrainingRequest(warm_start=options["policy"])
    _run(RunRequest(source, options["output"], training, options["overwrite"]), options)


def default_output(case: Path) -> Path:
    """Return `output` inside the case directory.

    Raises click.UsageError if that is a symbolic link: the author of the case would choose its target.
    """
    output = case / "output"
    if output.is_symlink():
        target = printable(os.fspath(output.readlink()), max_length=200)
        raise click.UsageError(f"{output} is a symbolic link to {target}: choose another directory with --output")
    return output


def _run(request: RunRequest, options: Mapping[str, Any]) -> None:
    """Carry out a request and print its summary. In a world of several ranks only rank 0, which has events, prints."""
    from cobre.cli.run_output import choose_progress, print_summary, report_or_warning
    from cobre.comm.detection import find_launch
    from cobre.core.stopping import StopKind
    from cobre.study.placement import WorldRequest, call_on_ranks, command_placement
    from cobre.study.unchecked_config import UncheckedConfig, with_config_document

    as_json, quiet = options["as_json"], options["quiet"]
    stream = sys.stderr if as_json else sys.stdout
    if not as_json:
        mark_output_as_optional()
    with report_errors():
        with closing(choose_progress(plain=options["plain"], quiet=quiet, stream=stream)) as progress:
            source = with_config_document(request.case)
            world = WorldRequest(options["backend"], options["workers"], options["threads"])
            placement = command_placement(world, UncheckedConfig.of(source))
            source = replace(source, threads=placement.threads)
            request = replace(request, case=source, split_reason=placement.reason)
            if not placement.is_joined:
                progress.expect(str(source.case))
            function = _run_as_rank if placement.is_joined else "cobre.study.run:run_study"
            summary: RunSummary = call_on_ranks(placement, function, (request,), progress.emit)[0]
        if progress.has_events:
            report = None if options["no_report"] else report_or_warning(request.output)
            if not quiet:
                print_summary(summary, report, stream, with_bounds=not progress.has_shown_bounds)
            if as_json:
                echo_json(summary.as_dict() | {"report": None if report is None else str(report)})
        # If a launcher ends all ranks when one of them fails, only rank 0 exits with the code of the signal.
        signalled = {StopKind.INTERRUPTED: ExitCode.INTERRUPTED, StopKind.TERMINATED: ExitCode.TERMINATED}
        launcher_kills_job = find_launch(os.environ) is not None
        if summary.stop_kind in signalled and (progress.has_events or not launcher_kills_job):
            sys.exit(signalled[summary.stop_kind])


def _run_as_rank(comm: "Backend", request: RunRequest, emit: "EventListener") -> "RunSummary":
    """Run as a rank that a launcher started: an error ends the job with a message for users."""
    from cobre.study.run import run_study

    with mark_errors_of_rank(comm):
        return run_study(comm, request, emit)
