"""The command `cobre` and its subcommands."""

from pathlib import Path

import click

from cobre import __version__
from cobre.cli.launch_command import launch

CASE = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cobre")
def main() -> None:
    """Train and simulate hydrothermal planning policies by SDDP.

    \b
    Exit codes: 0 success, 2 wrong command line, 3 invalid case, 4 a stage cannot be solved,
    5 results cannot be written, 6 a worker failed, 7 a policy does not fit, 130 interrupted,
    143 terminated.
    """


@main.command()
@click.argument("case", type=CASE)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Where results go (CASE/output).")
@click.option("--iterations", type=click.IntRange(min=1), help="Train so many iterations instead of the case's rules.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that share the work (one per usable core).")
@click.option(
    "--backend",
    type=click.Choice(["auto", "local", "shm", "tcp", "mpi"]),
    default="auto",
    help="How workers talk. auto: the world that mpiexec or COBRE_TCP_* describe, else shm.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of each worker (the cores are shared out).")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint in the output directory.")
@click.option("--warm-start", type=click.Path(exists=True, path_type=Path), help="Begin with the cuts of a policy.")
@click.option(
    "--time-limit", type=click.FloatRange(min=0.0), help="Stop after the iteration in which so many s are up."
)
@click.option("--checkpoint-every", type=click.IntRange(min=0), help="Iterations between checkpoints (10); 0: none.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object as the last line of standard output.")
def run(
    case: Path,
    output: Path | None,
    iterations: int | None,
    workers: int | None,
    backend: str,
    threads: int | None,
    resume: bool,
    warm_start: Path | None,
    time_limit: float | None,
    checkpoint_every: int | None,
    as_json: bool,
) -> None:
    """Train a policy for CASE, simulate it if the case says so, and write everything to the output directory.

    Ctrl-C and SIGTERM stop all workers after the iteration and keep the policy; a second Ctrl-C ends at once.

    \b
    Examples:
      cobre run examples/two_reservoirs
      cobre run my_case --output results --iterations 50 --workers 4
      cobre run my_case --output results --resume
      mpiexec -n 16 cobre run my_case --output results
    """
    from cobre.cli.run_command import RunFlags, run_case

    run_case(
        RunFlags(
            case=case,
            output=output or case / "output",
            iterations=iterations,
            workers=workers,
            backend=backend,
            threads=threads,
            resume=resume,
            warm_start=warm_start,
            time_limit_s=time_limit,
            checkpoint_every=checkpoint_every,
            as_json=as_json,
        )
    )


@main.command()
@click.argument("case", type=CASE)
def validate(case: Path) -> None:
    """Check CASE and list everything that is wrong with it."""
    from cobre.cli.case_commands import validate_case

    validate_case(case)


@main.command()
@click.argument("old", type=CASE)
@click.argument("new", type=click.Path(path_type=Path))
def migrate(old: Path, new: Path) -> None:
    """Convert the case OLD, in the format of version 0.5, to the current format in the new directory NEW."""
    from cobre.cli.case_commands import migrate_old_case

    migrate_old_case(old, new)


@main.command()
def version() -> None:
    """Print the versions of Cobre and of the libraries that decide about bits."""
    from cobre.cli.case_commands import print_versions

    print_versions()


main.add_command(launch)
