"""Commands about cases: `init`, `validate` and `migrate`."""

import sys
from pathlib import Path
from typing import Any

import click

from cobre.cli.echo import echo, echo_json
from cobre.cli.error_reporting import report_errors
from cobre.cli.exit_codes import ExitCode
from cobre.cli.run_path import CASE
from cobre.cli.setting_options import overrides_of, set_option
from cobre.shell_quoting import as_argument


def _complete_template(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from cobre.io.case_folder.templates import templates

    return [entry.name for entry in templates() if entry.name.startswith(incomplete)]


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path), required=False)
@click.option(
    "--template",
    "-t",
    default="two_reservoirs",
    show_default=True,
    shell_complete=_complete_template,
    help="The template to copy.",
)
@click.option("--list", "is_list", is_flag=True, help="List the templates and exit.")
def init(folder: Path | None, template: str, is_list: bool) -> None:
    """Create a new study in DIR from a template.

    DIR must be new or empty. The new case is of format 0.19, and yours to change.

    \b
    Examples:
      cobre init --list
      cobre init my_case
      cobre init my_case --template four_regions
    """
    from cobre.io.case_folder.templates import create_case, templates

    if is_list:
        for entry in templates():
            click.echo(f"{click.style(f'{entry.name:<16}', bold=True)} {entry.title}")
        return
    if folder is None:
        raise click.UsageError("give the directory of the new study: cobre init DIR")
    with report_errors():
        create_case(template, folder)
    name = as_argument(folder)
    echo(f"created {folder} from the template {template}; next:\n  cobre validate {name}\n  cobre run {name}")


@click.command()
@click.argument("case", type=CASE)
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def validate(case: Path, as_json: bool, **options: Any) -> None:
    """Check CASE: list its errors, and warn about values that look like mistakes.

    All files that can be read are checked in one pass. Checks that depend on a broken part are left out, and the output
    says so. Similar findings share a line; --json lists each of them.

    Exit code: 0 if the case can be run, with or without warnings, and 3 if it cannot.

    \b
    Examples:
      cobre validate my_case
      cobre validate my_case --json | jq '.errors[].file'
    """
    from cobre.study.validation import validate as check

    with report_errors():
        report = check(case, overrides_of(options))
    echo_json(report.as_dict()) if as_json else echo(report)
    sys.exit(ExitCode.SUCCESS if report else ExitCode.INVALID_CASE)


@click.command()
@click.argument("old", type=CASE)
@click.argument("new", type=click.Path(path_type=Path))
def migrate(old: Path, new: Path) -> None:
    """Convert a case of format 0.18 to 0.19, or one of format 0.5 to 0.18.

    OLD is left as it is; NEW is a new directory. What cannot be carried over, and what acts differently in the new
    format, is named.

    \b
    Example:
      cobre migrate old_case new_case
    """
    from cobre.io.case import format_of
    from cobre.io.case_folder.old_format import has_old_format
    from cobre.io.migrate import migrate_case, migrate_to_019

    with report_errors():
        if has_old_format(old):
            echo(migrate_case(old, new))
            return
        seen = format_of(old)
        if seen is not None and seen.version == "0.19":
            raise click.UsageError(f"{old} is of {seen} already: it needs no migration")
        echo(migrate_to_019(old, new))
