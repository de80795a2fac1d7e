"""Commands about cases: `validate`, `migrate`, and `version`."""

import sys
from pathlib import Path

import click

from cobre.cli.exit_codes import ExitCode
from cobre.cli.trouble import told


def validate_case(case: Path) -> None:
    """List all problems; the exit code says whether the case can be run."""
    from cobre.study.api import validate

    with told():
        report = validate(case)
        click.echo(str(report))
        sys.exit(ExitCode.SUCCESS if report else ExitCode.INVALID_CASE)


def migrate_old_case(old: Path, new: Path) -> None:
    """Convert, and say what was converted, dropped or guessed."""
    from cobre.io.migrate import migrate_case

    with told():
        click.echo(str(migrate_case(old, new)))


def print_versions() -> None:
    """One line for each."""
    from cobre.io.output.manifest import software_versions

    for name, found in software_versions().items():
        click.echo(f"{name} {found}")
