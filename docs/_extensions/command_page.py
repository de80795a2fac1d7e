"""The command line, from the commands themselves."""

import inspect
from collections.abc import Iterator

import click

from cobre.cli.exit_codes import ExitCode
from cobre.cli.main import main

EXIT_MEANINGS = {code: code.name.lower().replace("_", " ") for code in ExitCode}
INTRODUCTION = """\
# The command `cobre`

`cobre COMMAND --help` shows the same. Shell completion: `eval "$(_COBRE_COMPLETE=bash_source cobre)"` (or `zsh_source`,
`fish_source`).
"""


def command_page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_group("cobre", main), *_exit_codes(), ""])


def _group(path: str, group: click.Group) -> Iterator[str]:
    for name, command in _commands(group):
        if isinstance(command, click.Group):
            yield f"\n## {path} {name}\n\n{_help(command)}\n"
            yield from _group(f"{path} {name}", command)
        elif not command.hidden:
            yield from _command(f"{path} {name}", command)


def _commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """As the help lists them; a group may load them only now."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield name, command


def _command(path: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"\n## {path}\n\n```text\n{path} {usage}\n```\n\n{_help(command)}\n"
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if options:
        yield "| option | meaning |\n|---|---|"
        for option in options:
            record = option.get_help_record(context)
            assert record is not None  # noqa: S101 - hidden ones are left out
            yield f"| `{record[0]}` | {record[1].replace('|', chr(92) + '|')} |"


def _help(command: click.Command) -> str:
    """Paragraphs as text; those that click keeps as they are, as code."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    shown = []
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            shown.append("```text\n" + paragraph.removeprefix("\b\n") + "\n```")
        else:
            shown.append(" ".join(paragraph.split()))
    return "\n\n".join(shown)


def _exit_codes() -> Iterator[str]:
    yield "\n## Exit codes\n\n| code | kind |\n|---|---|"
    for code, meaning in EXIT_MEANINGS.items():
        yield f"| {int(code)} | {meaning} |"
