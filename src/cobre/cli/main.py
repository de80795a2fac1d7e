"""The command `cobre` and its subcommands."""

from pathlib import Path

import click

from cobre import __version__

CASE = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cobre")
def main() -> None:
    """Train and simulate hydrothermal planning policies by SDDP.

    \b
    Exit codes: 0 success, 2 wrong command line, 3 invalid case, 4 a stage cannot be solved,
    5 results cannot be written, 6 a worker failed, 7 a policy does not fit, 130 interrupted.
    """


@main.command()
@click.argument("case", type=CASE)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Where results go (CASE/output).")
@click.option("--iterations", type=click.IntRange(min=1), help="Train so many iterations instead of the case's rules.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the LP solver (all usable cores).")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object as the last line of standard output.")
def run(case: Path, output: Path | None, iterations: int | None, threads: int | None, as_json: bool) -> None:
    """Train a policy for CASE, simulate it if the case says so, and write everything to the output directory.

    \b
    Examples:
      cobre run examples/two_reservoirs
      cobre run my_case --output results --iterations 50 --threads 4
    """
    from cobre.cli.run_command import run_case

    run_case(case, output or case / "output", iterations, threads, as_json=as_json)


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
