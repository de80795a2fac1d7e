"""The path of a run or of a policy on the command line, which a command only reads."""

import os
from pathlib import Path
from typing import Any

import click

_NOT_THERE = (FileNotFoundError, NotADirectoryError)  # the command knows better what should be there
CASE = click.Path(exists=True, file_okay=False, path_type=Path)


class RunPath(click.Path):
    """A path that may be missing, and that the system can look at: its name is not too long, nor a link to itself."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse, as a wrong command line, what every look at the path would fail with."""
        try:
            Path(value).stat()
        except _NOT_THERE:
            pass
        except OSError as error:
            self.fail(f"{_short(value)}: {error.strerror}.", param, ctx)
        except ValueError as error:  # a zero byte, from another program
            self.fail(f"{_short(value)}: {error}.", param, ctx)
        return super().convert(value, param, ctx)


class OutputPath(click.Path):
    """The path of an output; an empty text, as from an unset variable, is refused."""

    def __init__(self, *, is_directory: bool = False) -> None:
        super().__init__(path_type=Path)
        self.is_directory = is_directory

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what would be the current folder."""
        if value == "":
            self.fail("the name is empty; the current folder is called '.'", param, ctx)
        if self.is_directory and Path(value).is_file():
            self.fail(f"{_short(value)} is a file; give a directory.", param, ctx)
        return super().convert(value, param, ctx)


def _short(value: Any) -> str:
    """A name that is too long for the system is too long for a message."""
    name = os.fspath(value)
    return repr(name if len(name) <= 80 else f"{name[:60]}...")
