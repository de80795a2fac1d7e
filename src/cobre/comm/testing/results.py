"""Results: one per cell of the grid."""

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cobre.comm.testing.case import Params


class Outcome(StrEnum):
    """How a cell ended. ERROR: the case did not complete, so there is no value to compare."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid: a case with its parameters, on a backend with a number of ranks.

    variant: of the backend, such as its wait strategy. mutant: the wrong communicator that is used; empty: none.
    """

    backend: str
    variant: str
    size: int
    case: str
    params: Params
    mutant: str = ""

    @property
    def group(self) -> str:
        """The part of the case's id before the slash."""
        return self.case.partition("/")[0]

    @property
    def name(self) -> str:
        """Case and parameters, in the form that `--case` accepts."""
        words = ",".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.case}:{words}" if words else self.case

    @property
    def command(self) -> str:
        """The command that runs this cell alone."""
        kind = {"faults": " --faults", "mutants": " --mutants"}.get(self.group, "")
        variant = f" --variant {self.variant}" if self.variant else ""
        where = f"--backend {self.backend}{variant} --ranks {self.size}"
        only = "" if self.group == "world" else f" --case '{self.name}'"  # a world ends badly after any case
        return f"python -m cobre.comm.testing {where}{kind}{only}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern of the command line matches the id of this cell, or its id and parameters."""
        return fnmatch.fnmatchcase(self.case, pattern) or fnmatch.fnmatchcase(self.name, pattern)


@dataclass(frozen=True, slots=True)
class Result:
    """A cell and its outcome. message: what is wrong. seconds: duration of the case."""

    cell: Cell
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether it failed, or did not complete."""
        return self.outcome in (Outcome.FAIL, Outcome.ERROR)

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON-serialisable dictionary."""
        return {
            "backend": self.cell.backend,
            "variant": self.cell.variant,
            "size": self.cell.size,
            "case": self.cell.case,
            "params": dict(self.cell.params),
            "outcome": self.outcome.value,
            "message": self.message,
            "seconds": round(self.seconds, 6),
        }


def bad(results: Iterable[Result]) -> list[Result]:
    """The results that failed, or did not complete."""
    return [result for result in results if result.is_bad]
