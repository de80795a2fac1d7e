"""What the LP solver did: counts that add up over solves, threads and ranks."""

from collections.abc import Sequence
from dataclasses import fields
from operator import add, attrgetter
from typing import Any

from cobre.records import dataclass
from cobre.solver.batches import Work


@dataclass(frozen=True, slots=True)
class SolveStatistics:
    """Sums; `seconds` are those inside the solver, added over threads.

    active_rows: rows at a bound in the optimal bases, cuts included (k of the kernel), summed over solves.
    nucleus: order of what is left of a basis when singletons are peeled, summed over refactorisations.
    retries: solves begun again from nothing or with other settings. library_solves: solves that HiGHS did.
    """

    solves: int = 0
    pivots: int = 0
    refactorisations: int = 0
    active_rows: int = 0
    nucleus: int = 0
    retries: int = 0
    library_solves: int = 0
    seconds: float = 0.0

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> "SolveStatistics":
        """From numbers in the order of the fields: the inverse of `numbers`."""
        counts = [int(number) for number in numbers[:-1]]
        return cls(*counts, float(numbers[-1]))  # type: ignore[call-arg]  # it takes a star for all arguments

    @property
    def numbers(self) -> list[float]:
        """In the order of the fields; counts are exact as long as they stay below 2**53."""
        return [float(value) for value in _VALUES(self)]

    def __add__(self, other: "SolveStatistics") -> "SolveStatistics":
        return SolveStatistics(*map(add, _VALUES(self), _VALUES(other)))

    @property
    def us_per_pivot(self) -> float | None:
        """Microseconds inside the solver; None without a pivot."""
        return 1e6 * self.seconds / self.pivots if self.pivots else None

    @property
    def mean_active_rows(self) -> float | None:
        """Mean number of active rows of an optimal basis; None without a solve."""
        return self.active_rows / self.solves if self.solves else None

    @property
    def mean_nucleus(self) -> float | None:
        """Mean order of the nucleus over factorisations; None when nothing was factorised."""
        return self.nucleus / self.refactorisations if self.refactorisations else None

    def as_dict(self) -> dict[str, Any]:
        """For a program that reads: the counts, and what follows from them."""
        counts = {name: getattr(self, name) for name in FIELDS if name not in ("active_rows", "nucleus")}
        return counts | {
            "us_per_pivot": self.us_per_pivot,
            "mean_active_rows": self.mean_active_rows,
            "mean_nucleus": self.mean_nucleus,
        }


FIELDS = tuple(field.name for field in fields(SolveStatistics))
_VALUES = attrgetter(*FIELDS)
_OF_WORK = attrgetter(*FIELDS[:-1], "solve_seconds")


def numbers_of(work: Work) -> tuple[int | float, ...]:
    """What one call of the solver did, in the order of the fields."""
    numbers: tuple[int | float, ...] = _OF_WORK(work)
    return numbers
