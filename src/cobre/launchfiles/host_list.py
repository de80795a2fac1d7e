"""Host lists as Slurm writes them: `node[01-04,7],gpu1`."""

import re
from collections.abc import Iterator
from itertools import product

from cobre.errors import CobreError

_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
MAX_RANGE = 100_000


class HostListError(CobreError, ValueError):
    """Text that is not a Slurm host list such as `node[1-3]`."""


def hosts(text: str) -> Iterator[str]:
    """The names of a host list, in its order; raises HostListError for any other text.

    list(hosts("node[01-02],gpu1"))    # ["node01", "node02", "gpu1"]
    """
    entries = _ENTRY.findall(text)
    if not entries or ",".join(entries) != text:
        raise HostListError(f"{text!r} is not a host list such as node[01-04,7],gpu1")
    for entry in entries:
        parts = [_ranges(text, inside) if inside else (plain,) for inside, plain in _parts(text, entry)]
        yield from map("".join, product(*parts))


def _parts(text: str, entry: str) -> list[tuple[str, str]]:
    if "[]" in entry:
        raise HostListError(f"{text!r} has an empty range")
    return _PART.findall(entry)


def _ranges(text: str, inside: str) -> tuple[str, ...]:
    return tuple(number for piece in inside.split(",") for number in _range(text, piece))


def _range(text: str, piece: str) -> Iterator[str]:
    """The numbers of a range such as `7` or `01-04`, with as many digits as the first has."""
    found = _RANGE.fullmatch(piece)
    if found is None:
        raise HostListError(f"{text!r} has a range {piece!r}, expected one such as 7 or 01-04")
    first, last = found[1], found[2] or found[1]
    if not 0 <= int(last) - int(first) <= MAX_RANGE:
        raise HostListError(
            f"{text!r} has a range {piece!r}, expected one that ascends, over at most {MAX_RANGE} numbers"
        )
    return (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
