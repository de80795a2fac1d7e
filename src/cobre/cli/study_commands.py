"""`cobre run` and `cobre simulate`, as the command line has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cobre.cli.finite_range import FiniteRange
from cobre.cli.run_path import CASE, OutputPath, RunPath
from cobre.cli.setting_options import set_option, study_options
from cobre.limits import MAX_COUNT, MAX_THREADS
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, DEFAULT_CHECKPOINT_SECONDS

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
