"""The command line, from the commands themselves."""

import inspect
import re
from collections.abc import Iterator

import click

from cobre.cli.error_reporting import ExitCode
from cobre.cli.main import main

PLAIN_MEANINGS = {
    ExitCode.SUCCESS: "all is well",
    ExitCode.UNEXPECTED: "not foreseen; of `cobre compare`: the runs differ; of `cobre doctor`: not healthy",
    ExitCode.USAGE: "a wrong command line",
    ExitCode.INVALID_CASE: "the case has errors, or is not a case",
}
INTRODUCTION = """\
# The command `cobre`

`cobre COMMAND --help` shows the same. [`cobre completion`](#cobre-completion) makes your shell complete
commands and options. What a program can rely on are the [exit codes](#exit-codes) and `--json`.
"""


def command_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([INTRODUCTION, *_group("cobre", main), *_exit_codes(), ""])


def _group(path: str, group: click.Group) -> Iterator[str]:
    for name, command in _commands(group):
        if isinstance(command, click.Group):
            yield f"\n## {path} {name}\n\n{_help(command)}\n"
            yield from _group(f"{path} {name}", command)
        elif not command.hidden:
            yield from _command(f"{path} {name}", command)


def _commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Yield commands in the order of the help; a group may load them only now."""
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
            yield f"| `{_cell(record[0])}` | {_cell(record[1])} |"


def _cell(text: str) -> str:
    """Escape bars, which would end the cell, in code as well."""
    return text.replace("|", "\\|")


def _help(command: click.Command) -> str:
    """Return help text as Markdown; preformatted paragraphs become code blocks."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    shown = []
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            shown.append("```text\n" + paragraph.removeprefix("\b\n") + "\n```")
        else:
            shown.append(" ".join(paragraph.split()))
    return "\n\n".join(shown)


def _exit_codes() -> Iterator[str]:
    yield "\n## Exit codes"
    yield '\nWith `--json` an error is the last line of standard output, too: `{"error": "...", "exit_code": 3}`.'
    yield "\n| code | kind | meaning |\n|---|---|---|"
    comments = dict(re.findall(r"^    (\w+) = [^#\n]+(?:# (.*))?$", inspect.getsource(ExitCode), re.MULTILINE))
    for code in ExitCode:
        meaning = comments[code.name] or PLAIN_MEANINGS[code]
        yield f"| {int(code)} | {code.name.lower().replace('_', ' ')} | {meaning[0].upper()}{meaning[1:]}. |"
