"""`cobre run` and `cobre simulate`, as the command line has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cobre.cli.run_path import OutputPath, RunPath

Command = TypeVar("Command", bound=Callable[..., Any])
CASE = click.Path(exists=True, file_okay=False, path_type=Path)


def world_options(command: Command) -> Command:
    """Where a study runs; the first decorator comes first in the help."""
    for decorate in reversed(
        (
            click.option(
                "--workers",
                type=click.IntRange(min=1),
                help="Processes that share the work (this one alone, with a thread for each usable core; over a tree "
                "or with --backend shm or tcp one per usable core, but no more than there are paths).",
            ),
            click.option(
                "--backend",
                type=click.Choice(["auto", "local", "shm", "tcp", "mpi"]),
                default="auto",
                help="How workers talk. auto: the world that mpiexec or COBRE_TCP_* describe, else shm.",
            ),
            click.option(
                "--threads", type=click.IntRange(min=1, max=1024), help="Threads of each worker (the cores shared out)."
            ),
        )
    ):
        command = decorate(command)
    return command


def _speech_options(command: Command) -> Command:
    """What is said while it runs and in the end."""
    for decorate in reversed(
        (
            click.option("--plain", is_flag=True, help="One line for each iteration, on a terminal too."),
            click.option("--quiet", "-q", is_flag=True, help="Say nothing but warnings and errors."),
            click.option("--no-report", is_flag=True, help="Write no report.html."),
            click.option(
                "--json", "as_json", is_flag=True, help="Print a JSON object and nothing else to standard output."
            ),
        )
    ):
        command = decorate(command)
    return command


@click.command()
@click.argument("case", type=CASE)
@click.option("--output", "-o", type=OutputPath(is_directory=True), help="Where results go (CASE/output).")
@click.option("--iterations", type=click.IntRange(min=1), help="Train so many iterations instead of the case's rules.")
@world_options
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint in the output directory.")
@click.option("--auto-resume", is_flag=True, help="As --resume where there is a checkpoint, else begin.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier run in the output directory.")
@click.option("--warm-start", type=click.Path(exists=True, path_type=Path), help="Begin with the cuts of a policy.")
@click.option(
    "--time-limit", type=click.FloatRange(min=0.0), help="Stop after the iteration in which so many s are up."
)
@click.option("--checkpoint-every", type=click.IntRange(min=0), help="Iterations between checkpoints (10); 0: none.")
@click.option(
    "--checkpoint-minutes",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Minutes after which a checkpoint is written at the latest (5).",
)
@_speech_options
def run(case: Path, **options: Any) -> None:
    """Train a policy for CASE, simulate it if the case says so, and write everything to the output directory.

    On a terminal a table shows how it goes, in a pipe or log one line for each iteration; `cobre top` looks at it from
    another terminal. Ctrl-C and SIGTERM stop all workers after the iteration and keep the policy; a second Ctrl-C ends
    at once. Where nobody can be told how it goes, as with a log on a full disk, it goes on all the same.

    An output directory that holds an earlier run is refused unless --resume, --auto-resume or --overwrite says what to
    do with it.

    \b
    Examples:
      cobre run examples/two_reservoirs
      cobre run my_case --output results --iterations 50 --workers 4
      cobre run my_case --output results --resume
      cobre run my_case --quiet --json > summary.json
      mpiexec -n 16 cobre run my_case --output results
    """
    from cobre.cli.run_command import RunOptions, run_case

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
@click.option("--output", "-o", type=OutputPath(is_directory=True), required=True, help="Where results go.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier simulation in the output directory.")
@click.option("--scenarios", type=click.IntRange(min=1), help="How many (as the case says).")
@world_options
@_speech_options
def simulate(case: Path, **options: Any) -> None:
    """Simulate a stored policy on CASE, without training.

    The policy may come from another run of the same system: other loads, inflows or scenarios are welcome, another
    number of plants or stages is not.

    \b
    Examples:
      cobre simulate my_case --policy results/policy --output results-2000 --scenarios 2000
      cobre simulate dry_year --policy results/policy/policy.bin --output dry --workers 4
    """
    from cobre.cli.run_command import RunOptions, run_case
    from cobre.runs.files import MANIFEST_FILE, TRAINING

    if (options["output"] / TRAINING / MANIFEST_FILE).exists():
        message = f"{options['output']} holds a run that was trained, whose log and summary would be lost"
        raise click.UsageError(f"{message}: choose another --output")
    run_case(RunOptions.of_simulation(case, options))
