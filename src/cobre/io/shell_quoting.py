"""Paths in commands that a person shall copy to a shell."""

import shlex
from pathlib import Path


def as_argument(path: Path | str) -> str:
    """With quotes where the name needs them; one that begins with a dash is not taken for an option."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
