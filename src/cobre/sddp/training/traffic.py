"""How many bytes ranks exchange in an iteration, by purpose."""

from collections.abc import Iterable, Mapping

# What no way of sharing the work can do without: what each path costs, each cut, and the states that selection reads.
NEEDED = frozenset({"path costs", "cuts", "trial states"})


class Traffic:
    """Bytes that one rank makes and the others read, each counted once however many ranks read it.

    A byte goes to every other rank, or once to every other node where ranks of a node share memory. With one rank there
    is none.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._bytes: dict[str, int] = {}

    def add(self, purpose: str, nbytes: int) -> None:
        """Count the bytes that all ranks together exchanged for a purpose."""
        if self._size > 1:
            self._bytes[purpose] = self._bytes.get(purpose, 0) + nbytes

    @property
    def by_purpose(self) -> Mapping[str, int]:
        """In the order in which purposes first came up."""
        return dict(self._bytes)


def total_traffic(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Several iterations' traffic, added by purpose."""
    total: dict[str, int] = {}
    for part in parts:
        for purpose, nbytes in part.items():
            total[purpose] = total.get(purpose, 0) + nbytes
    return total


def least_traffic(exchanged: Mapping[str, int]) -> int:
    """How many of the exchanged bytes the method needs however work is split."""
    return sum(nbytes for purpose, nbytes in exchanged.items() if purpose in NEEDED)
