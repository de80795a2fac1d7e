"""Tables in which every scenario has rows with the same keys as the first.

The keys of a large simulation's table take gigabytes: they are checked piece by piece, and only those of one scenario
are kept.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.records import dataclass

Keys = Sequence[NDArray[Any]]  # scenario first, then the other keys of a row


@dataclass(frozen=True, slots=True)
class RowPattern:
    """The scenarios in order, and the other keys of the rows, which all scenarios share."""

    scenarios: tuple[int, ...]
    keys: Keys

    @property
    def rows(self) -> int:
        """The number of rows of one scenario."""
        return len(self.keys[0])


def row_pattern(pieces: Iterable[Keys]) -> RowPattern | None:
    """The pattern; None if a scenario has other rows than the first, or scenarios are not in ascending order."""
    found: _Check | None = None
    held: Keys | None = None  # rows of the first scenario, until the second begins
    for piece in pieces:
        held = piece if held is None else [np.concatenate(pair) for pair in zip(held, piece, strict=True)]
        if found is None and len(held[0]) and held[0][-1] != held[0][0]:
            found = _Check(held)
        if found is not None:
            if not found.holds(held):
                return None
            held = [key[:0] for key in held]
    if found is None:
        return _of_one(held)
    return found.pattern()


def _of_one(held: Keys | None) -> RowPattern | None:
    if held is None or not len(held[0]):
        return None
    return RowPattern((int(held[0][0]),), held[1:])


class _Check:
    def __init__(self, first: Keys) -> None:
        self._rows = int(np.argmax(first[0] != first[0][0]))
        self._keys = [key[: self._rows].copy() for key in first[1:]]
        self._scenarios: list[int] = []
        self._seen = 0

    def holds(self, piece: Keys) -> bool:
        """Whether the next rows follow the pattern of the first scenario."""
        at = self._seen + np.arange(len(piece[0]))
        turn, row = np.divmod(at, self._rows)
        self._scenarios += piece[0][row == 0].tolist()
        self._seen += len(at)
        same_keys = all(bool((key == wanted[row]).all()) for key, wanted in zip(piece[1:], self._keys, strict=True))
        return same_keys and bool((np.array(self._scenarios)[turn] == piece[0]).all())

    def pattern(self) -> RowPattern | None:
        is_whole = self._seen % self._rows == 0
        is_in_order = all(a < b for a, b in zip(self._scenarios, self._scenarios[1:], strict=False))
        return RowPattern(tuple(self._scenarios), self._keys) if is_whole and is_in_order else None
