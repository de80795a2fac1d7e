"""Measured cases: every one once, for all contenders.

Payloads are those of production runs: a convergence statistic (32 B), a cost vector (8 MB), the states of one
stage (3.2 MB) and of a whole pass (206 MB), one cut (10 KB), the opening tree (20 MB).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

BYTES_PER_ELEMENT = 8  # everything is float64
QUICK_DIVISOR = 3
RAGGEDNESS = 0.2  # the first rank has so much less than the mean, the last so much more


class Kind(StrEnum):
    """The call that a case makes."""

    BARRIER = "barrier"
    ALLREDUCE = "allreduce"
    ALLGATHERV = "allgatherv"
    ALLGATHERV_INTO_REGION = "allgatherv into region"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Case:
    """One column of the table.

    elements: size of the result on one rank. batch: number of calls per repetition, more than one if a call is too
    short for the clock. baseline: case to compare with if a contender does not support this one.
    """

    name: str
    kind: Kind
    elements: int
    batch: int
    repetitions: int
    baseline: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of the result on one rank."""
        return self.elements * BYTES_PER_ELEMENT

    @property
    def compared_with(self) -> str:
        """Name of the case to compare with if a contender does not support this one."""
        return self.baseline or self.name

    def counts(self, size: int) -> tuple[int, ...]:
        """Return every rank's count of an allgatherv, growing from 80 % to 120 % of the mean."""
        steps = max(1, size - 1)
        weights = [1 - RAGGEDNESS + 2 * RAGGEDNESS * rank / steps for rank in range(size)]
        ends = [round(self.elements * end / size) for end in accumulate(weights)]
        ends[-1] = self.elements
        return tuple(end - begin for begin, end in zip([0, *ends], ends, strict=False))


CASES = (
    Case("barrier", Kind.BARRIER, 0, 200, 30),
    Case("allreduce 32 B", Kind.ALLREDUCE, 4, 200, 30),
    Case("allreduce 8 MB", Kind.ALLREDUCE, 1_000_000, 1, 40),
    Case("allgatherv 3.2 MB", Kind.ALLGATHERV, 400_000, 1, 60),
    Case("3.2 MB into region", Kind.ALLGATHERV_INTO_REGION, 400_000, 1, 60, "allgatherv 3.2 MB"),
    Case("allgatherv 206 MB", Kind.ALLGATHERV, 25_750_000, 1, 9),
    Case("206 MB into region", Kind.ALLGATHERV_INTO_REGION, 25_750_000, 1, 9, "allgatherv 206 MB"),
    Case("broadcast 10 KB", Kind.BROADCAST, 1_250, 200, 30),
    Case("broadcast 20 MB", Kind.BROADCAST, 2_500_000, 1, 30),
)


def select_cases(names: Iterable[str] = (), *, quick: bool = False) -> tuple[Case, ...]:
    """Return the named cases, or all; `quick` runs a third of the repetitions. Raises ValueError for unknown names."""
    available = [case.name for case in CASES]
    requested = tuple(names) or available
    unknown = sorted(set(requested) - set(available))
    if unknown:
        raise ValueError(f"no such case: {', '.join(unknown)}; there are: {', '.join(available)}")
    selected = (case for case in CASES if case.name in requested)
    divisor = QUICK_DIVISOR if quick else 1
    return tuple(replace(case, repetitions=case.repetitions // divisor) for case in selected)
