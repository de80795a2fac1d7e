"""Quoting of paths in commands that users copy to a shell."""

import shlex
from pathlib import Path


def as_argument(path: Path | str) -> str:
    """A path as a shell argument: quoted where needed, and never taken as an option."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
