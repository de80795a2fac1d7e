"""Commands about cases: `init`, `convert`, `validate` and `migrate`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cobre.cli.error_reporting import ExitCode, report_errors
from cobre.cli.setting_options import CASE, OutputPath, combine_options, options_by_setting, overrides_of, set_option
from cobre.cli.standard_streams import echo, echo_json
from cobre.text import as_argument

if TYPE_CHECKING:
    from cobre.bridge.conversion import DeckRequest
    from cobre.bridge.environment import Bridge


def _complete_template(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from cobre.io.case_folder.new_cases import templates

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

    DIR must be new or empty. The case is in format 0.19, and yours to change.

    \b
    Examples:
      cobre init --list
      cobre init my_case
      cobre init my_case --template four_regions
    """
    from cobre.io.case_folder.new_cases import create_case, templates

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
    echo_json(report.as_dict()) if as_json else echo(report.text(options_by_setting()))
    sys.exit(ExitCode.SUCCESS if report else ExitCode.INVALID_CASE)


@click.command()
@click.argument("old", type=CASE)
@click.argument("new", type=click.Path(path_type=Path))
def migrate(old: Path, new: Path) -> None:
    """Convert a case of format 0.18 to 0.19.

    OLD is not changed; NEW must be a new directory. The command lists what cannot be carried over, and what behaves
    differently in the new format.

    \b
    Example:
      cobre migrate old_case new_case
    """
    from cobre.io.case import format_of
    from cobre.io.migrate import migrate_to_019

    with report_errors():
        case_format = format_of(old)
        if case_format is not None and case_format.version == "0.19":
            raise click.UsageError(f"{old} is already of {case_format}: it needs no migration")
        echo(migrate_to_019(old, new))


# `cobre convert`: decks of other planning models, converted by their bridges.


@click.group()
def convert() -> None:
    """Convert a NEWAVE or DECOMP deck to a case.

    DECK is a folder or a zip archive, as the market chamber publishes them. It is converted by novomodelo-bridge
    0.19.1, or by cobre-bridge 0.18.0 with --using, in a separate environment: the one given by --bridge, or one that
    is created in your cache directory on first use. Creating it needs Python 3.12 or newer and access to PyPI.

    \b
    Examples:
      cobre convert newave newave_2025_12.zip my_case
      cobre convert newave deck my_case --using cobre-bridge
      cobre convert decomp deck my_case --bridge ~/bridge-env
    """


_options = combine_options(
    click.argument("deck", type=click.Path(exists=True, path_type=Path)),
    click.argument("case", type=OutputPath()),
    click.option(
        "--bridge",
        type=click.Path(exists=True, path_type=Path),
        help="An environment with a bridge: its folder, its python or the bridge's command.",
    ),
    click.option(
        "--using",
        type=click.Choice(["novomodelo-bridge", "cobre-bridge"]),
        help="The bridge; cobre-bridge writes cases of format 0.18. Default: novomodelo-bridge, or the bridge in the "
        "environment given by --bridge.",
    ),
    click.option("--force", is_flag=True, help="Write into CASE even if it is not empty."),
    click.option("--repair", is_flag=True, help="Repair a copy of the deck if it needs it, and list the repairs."),
    click.option("--json", "as_json", is_flag=True, help="Print a JSON object and nothing else."),
)


@convert.command()
@_options
def newave(**options: Any) -> None:
    """Convert the NEWAVE deck in DECK to CASE, then validate it.

    Prints the diagnostics of the bridge. The exit code is 3 if it refuses the deck, or if the new case is invalid.
    Decks up to 2019 are refused, although their meaning is clear; --repair converts them.

    \b
    Examples:
      cobre convert newave deck my_case
      cobre convert newave deck my_case --json | jq '.bridge.diagnostics'
    """
    _convert("newave", has_boundary_policy=True, **options)


@convert.command()
@_options
@click.option("--no-fcf", is_flag=True, help="Leave out the cost-to-go after the last stage.")
def decomp(no_fcf: bool, **options: Any) -> None:
    """Convert the DECOMP deck in DECK to CASE, then validate it.

    If the deck names files with cuts, they become the boundary policy at the end of the horizon.

    The bridges refuse or misread some decks although their meaning is clear: late revisions of a month, with records
    of gas plants that the bridges do not read, and decks up to 2024, whose tailrace curves are in fixed columns. The
    command says which repairs would help; --repair makes them, and conversion_manifest.json lists them.

    \b
    Examples:
      cobre convert decomp deck my_case --no-fcf
      cobre convert decomp deck.zip my_case --repair
    """
    _convert("decomp", has_boundary_policy=not no_fcf, **options)


def _convert(
    model: Any,
    deck: Path,
    case: Path,
    bridge: Path | None,
    using: str | None,
    force: bool,
    repair: bool,
    as_json: bool,
    has_boundary_policy: bool,
) -> None:
    from cobre.bridge.archive import unpacked_deck
    from cobre.bridge.conversion import DeckRequest
    from cobre.bridge.environment import BRIDGE_0_19, PROGRAMS, bridge_at, managed_bridge

    request = DeckRequest(model, deck, case, has_boundary_policy, force, repair)
    bridge_program = None if using is None else PROGRAMS[using]
    with report_errors():
        if bridge is None:
            with unpacked_deck(deck):
                pass  # reject an archive without a deck before hundreds of megabytes are installed
            environment = managed_bridge(lambda text: echo(text, err=True), bridge_program or BRIDGE_0_19)
        else:
            environment = bridge_at(bridge, bridge_program)
        (_convert_to_json if as_json else _convert_and_print)(environment, request)


def _convert_and_print(bridge: "Bridge", request: "DeckRequest") -> None:
    from cobre.bridge.conversion import convert_deck
    from cobre.bridge.repairs import in_words, offer
    from cobre.study.validation import validate

    sys.stdout.flush()
    repairs, offered = convert_deck(bridge, request)
    if repairs:
        echo(f"repaired in a copy of the deck:\n{in_words(repairs)}")
    report = validate(request.case)
    echo(report)
    if offered:
        echo(f"the deck was converted as it is; {offer(offered)}")
    if not report:
        sys.exit(ExitCode.INVALID_CASE)
    echo(f"next:\n  cobre run {as_argument(request.case)}")


def _convert_to_json(bridge: "Bridge", request: "DeckRequest") -> None:
    from cobre.bridge.conversion import convert_deck_quietly
    from cobre.study.validation import validate

    diagnostics = convert_deck_quietly(bridge, request)
    report = validate(request.case)
    echo_json({"bridge": diagnostics, "validation": report.as_dict()})
    sys.exit(ExitCode.SUCCESS if report else ExitCode.INVALID_CASE)
