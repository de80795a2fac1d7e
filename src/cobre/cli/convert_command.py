"""`cobre convert`: decks of other planning models become cases, through cobre-bridge."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cobre.cli.error_reporting import report_errors
from cobre.cli.exit_codes import ExitCode
from cobre.cli.run_path import OutputPath
from cobre.cli.say import say, say_json
from cobre.io.shell_quoting import as_argument

if TYPE_CHECKING:
    from cobre.bridge.conversion import DeckRequest
    from cobre.bridge.environment import Bridge

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def convert() -> None:
    """Make a case of a NEWAVE or DECOMP deck.

    cobre-bridge does it, in an environment of its own: the one that --bridge names, or one that is made the first
    time, in the user's cache. It needs Python 3.12 or newer on the path, and PyPI.

    \b
    Examples:
      cobre convert newave deck my_case
      cobre convert decomp deck my_case --bridge ~/bridge-env
    """


def _options(command: Command) -> Command:
    for decorate in reversed(
        (
            click.argument("deck", type=click.Path(exists=True, file_okay=False, path_type=Path)),
            click.argument("case", type=OutputPath()),
            click.option(
                "--bridge",
                type=click.Path(exists=True, path_type=Path),
                help="An environment that has cobre-bridge: its folder, its python or its command.",
            ),
            click.option("--force", is_flag=True, help="Write into CASE even if it is not empty."),
            click.option("--json", "as_json", is_flag=True, help="Print a JSON object and nothing else."),
        )
    ):
        command = decorate(command)
    return command


@convert.command()
@_options
def newave(**options: Any) -> None:
    """Make CASE of the NEWAVE deck in DECK, then check it as `cobre validate` does.

    What cobre-bridge has to say of the deck is shown. The exit code is 3 when it refuses the deck, or when the case
    that it made cannot be run.

    \b
    Examples:
      cobre convert newave deck my_case
      cobre convert newave deck my_case --json | jq '.bridge.diagnostics[].summary'
    """
    _convert("newave", has_boundary=True, **options)


@convert.command()
@_options
@click.option("--no-fcf", is_flag=True, help="Leave the cost-to-go after the last stage out.")
def decomp(no_fcf: bool, **options: Any) -> None:
    """Make CASE of the DECOMP deck in DECK, then check it as `cobre validate` does.

    Where the deck names its files of cuts, they become a policy that prices the end of the study.

    \b
    Example:
      cobre convert decomp deck my_case --no-fcf
    """
    _convert("decomp", has_boundary=not no_fcf, **options)


def _convert(
    model: Any, deck: Path, case: Path, bridge: Path | None, force: bool, as_json: bool, has_boundary: bool
) -> None:
    from cobre.bridge.conversion import DeckRequest
    from cobre.bridge.environment import bridge_at, own_bridge

    request = DeckRequest(model, deck, case, has_boundary, force)
    with report_errors():
        found = own_bridge(lambda text: say(text, err=True)) if bridge is None else bridge_at(bridge)
        (_answer if as_json else _print_result)(found, request)


def _print_result(bridge: "Bridge", request: "DeckRequest") -> None:
    from cobre.bridge.conversion import convert_deck
    from cobre.study.api import validate

    sys.stdout.flush()
    convert_deck(bridge, request)
    report = validate(request.case)
    say(report)
    if not report:
        sys.exit(ExitCode.INVALID_CASE)
    say(f"next:\n  cobre run {as_argument(request.case)}")


def _answer(bridge: "Bridge", request: "DeckRequest") -> None:
    from cobre.bridge.conversion import convert_deck_quietly
    from cobre.study.api import validate

    account = convert_deck_quietly(bridge, request)
    report = validate(request.case)
    say_json({"bridge": account, "validation": report.as_dict()})
    sys.exit(ExitCode.SUCCESS if report else ExitCode.INVALID_CASE)
