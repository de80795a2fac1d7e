"""Results of cases: what a rank sees and writes down, one result per cell of the grid, and the table of all."""

import fnmatch
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import numpy as np

from cobre.comm.communicator import Communicator
from cobre.comm.errors import CollectiveFailedError, CommError
from cobre.comm.testing.case import Params, Value

# Results: one per cell of the grid.

KIT = "python -m cobre.comm.testing"


class Outcome(StrEnum):
    """Outcome of a cell. ERROR: the case did not complete, so there is no value to compare."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid: a case with its parameters, on a backend with a number of ranks.

    variant: a variant of the backend, such as its wait strategy. wrapper: "module:name" of a class or function that is
    applied to the communicator first, such as a mutant; empty: none.
    """

    backend: str
    variant: str
    size: int
    case: str
    params: Params
    wrapper: str = ""

    @property
    def group(self) -> str:
        """The part of the case's id before the slash."""
        return self.case.partition("/")[0]

    @property
    def name(self) -> str:
        """Case and parameters, in the form that `--case` accepts."""
        words = ",".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.case}:{words}" if words else self.case

    def command(self, program: str = KIT) -> str:
        """Return the command that runs only this cell."""
        variant = f" --variant {self.variant}" if self.variant else ""
        where = f"--backend {self.backend}{variant} --ranks {self.size}"
        only = "" if self.group == "world" else f" --case '{self.name}'"  # a world ends badly after any case
        return f"{program} {where}{only}"

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern of the command line matches the id of this cell, or its id and parameters."""
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
        """Return the result as a JSON-serialisable dictionary."""
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
    """Return the results that failed, or did not complete."""
    return [result for result in results if result.is_bad]


MARKS = {Outcome.PASS: "", Outcome.FAIL: "FAILED", Outcome.ERROR: "ERROR", Outcome.SKIPPED: "skipped"}


def table(results: Sequence[Result]) -> str:
    """Format one line per group of cases, one column per backend, variant and number of ranks."""
    columns = list(dict.fromkeys(_column(result) for result in results))
    groups = list(dict.fromkeys(result.cell.group for result in results))
    rows = [["", *columns]]
    rows += [[group, *(_outcome_counts(_select(results, group, column)) for column in columns)] for group in groups]
    rows.append(
        ["all", *(_outcome_counts([result for result in results if _column(result) == column]) for column in columns)]
    )
    return _aligned(rows)


def failures(results: Iterable[Result], program: str = KIT) -> str:
    """List the failures, each with the command that reproduces it."""
    return "\n\n".join(
        f"{MARKS[result.outcome]} {result.cell.name} ({_column(result)})\n"
        f"{_indented(result.message)}\n    reproduce: {result.cell.command(program)}"
        for result in bad(results)
    )


def skips(results: Iterable[Result]) -> str:
    """List the cells that were skipped, and why."""
    return "\n".join(
        f"skipped {result.cell.name} ({_column(result)}): {result.message}"
        for result in results
        if result.outcome is Outcome.SKIPPED
    )


def run_and_print(
    results: Iterable[Result], *, complete: bool, program: str = KIT, json_file: str | None = None
) -> int:
    """Run the cells, print progress and the table, and return the exit code.

    complete: a skipped cell is a failure of the run. json_file: where to write all results as well.
    """
    begin = time.monotonic()
    finished = list(_with_progress(results))
    texts = [f"\n{table(finished)}\n" if finished else "no case matches", skips(finished), failures(finished, program)]
    texts.append(f"{len(finished)} cells in {time.monotonic() - begin:.0f} s, {len(bad(finished))} failed")
    sys.stdout.write("".join(f"{text}\n" for text in texts if text))
    if json_file:
        Path(json_file).write_text(json.dumps([result.to_json() for result in finished], indent=1), encoding="utf-8")
    skipped = any(result.outcome is Outcome.SKIPPED for result in finished)
    return 0 if finished and not bad(finished) and not (complete and skipped) else 1


def _with_progress(results: Iterable[Result]) -> Iterator[Result]:
    """Print progress, and failures as they occur."""
    heading = ""
    for result in results:
        here = f"{result.cell.backend} {result.cell.variant} x{result.cell.size} {result.cell.group}"
        if here != heading:
            heading = here
            sys.stderr.write(f"\n{here} ")
        sys.stderr.write("." if result.outcome is Outcome.PASS else f"\n{result.outcome.value}: {result.cell.name}\n")
        sys.stderr.flush()
        yield result
    sys.stderr.write("\n")


def _column(result: Result) -> str:
    cell = result.cell
    return " ".join(filter(None, (cell.backend, cell.variant, f"x{cell.size}")))


def _select(results: Sequence[Result], group: str, column: str) -> list[Result]:
    return [result for result in results if result.cell.group == group and _column(result) == column]


def _outcome_counts(results: Sequence[Result]) -> str:
    """Count the cells that passed, and those with other outcomes by name."""
    outcomes = Counter(result.outcome for result in results)
    others = [f"{outcomes[outcome]} {mark}" for outcome, mark in MARKS.items() if mark and outcomes[outcome]]
    return ", ".join([f"{outcomes[Outcome.PASS]}", *others]) if results else "-"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()[:60])


# Failed calls as a rank sees them, in a JSON-serialisable form.

COLLECTIVES: dict[str, Callable[[Any], object]] = {
    "allgatherv": lambda comm: comm.allgatherv(np.zeros(1), np.zeros(comm.size), [1] * comm.size),
    "allreduce": lambda comm: comm.allreduce(np.zeros(1), np.zeros(1)),
    "broadcast": lambda comm: comm.broadcast(np.zeros(1)),
    "barrier": lambda comm: comm.barrier(),
    "create_shared_region": lambda comm: comm.create_shared_region(1, np.int8).close(),
    "split_local": lambda comm: comm.split_local().close(),
}
"""The smallest call of each kind."""


CORE_COLLECTIVES = ("allgatherv", "allreduce", "broadcast", "barrier")
"""The calls that every communicator has, whether it provides shared regions or not."""


def describe(error: BaseException) -> dict[str, Any]:
    """Return type and text of an error, and the ranks, operation and sequence number that it names."""
    report: dict[str, Any] = {
        "error": type(error).__name__,
        "message": str(error),
        "ranks": [],
        "pids": [],
        "hosts": [],
    }
    if isinstance(error, CollectiveFailedError):
        report |= {
            "operation": error.operation,
            "sequence": error.sequence,
            "ranks": list(error.ranks),
            "pids": [peer.pid for peer in error.peers],
            "hosts": [peer.host for peer in error.peers],
        }
    return report


def attempt(call: Callable[[], object]) -> dict[str, Any]:
    """Make a call; return the description of its error, with an empty "error" if it succeeded."""
    try:
        call()
    except (CommError, KeyboardInterrupt) as error:
        return describe(error)
    return {"error": "", "message": "", "ranks": [], "pids": [], "hosts": []}


def refusals(comm: Communicator, names: Iterable[str] = COLLECTIVES) -> dict[str, str]:
    """Return the error that each kind of call raises now."""
    return {name: attempt(partial(COLLECTIVES[name], comm))["error"] for name in names}


def causes(comm: Communicator) -> list[str]:
    """Return the error that a call raises now, and the chain of its causes."""
    try:
        comm.barrier()
    except CommError as error:
        return [type(link).__name__ for link in _chain(error)]
    return []


def _chain(error: BaseException) -> list[BaseException]:
    return [error, *(_chain(error.__cause__) if error.__cause__ is not None else [])]


# Journals that ranks write case by case, so that a crash or a hang loses only the case in which it happens.


@dataclass(frozen=True, slots=True)
class Entry:
    """Outcome of one case on one rank."""

    value: Value = None
    error: str = ""
    seconds: float = 0.0


class JournalWriter:
    """Writer of one line per case, flushed before the next case begins."""

    def __init__(self, folder: str, rank: int) -> None:
        self._file = _path(folder, rank).open("w", encoding="utf-8")
        self._stacks = _stack_path(folder, rank).open("w", encoding="utf-8")

    @property
    def stacks(self) -> TextIO:
        """The file that a hanging rank dumps its stack to."""
        return self._stacks

    def write(self, number: int, entry: Entry) -> None:
        """Write how a case ended."""
        line = {"number": number, "value": entry.value, "error": entry.error, "seconds": entry.seconds}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._stacks.close()


def read_journal(folder: str, rank: int) -> Mapping[int, Entry]:
    """Read the entries of one rank by the number of the case."""
    try:
        lines = _path(folder, rank).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return dict(_entry(line) for line in lines if line.endswith("}"))


def read_stack(folder: str, rank: int) -> str:
    """Read the stack of a rank that exceeded the time limit of a case; empty if there is none."""
    path = _stack_path(folder, rank)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _entry(line: str) -> tuple[int, Entry]:
    fields: dict[str, Any] = json.loads(line)
    number = fields.pop("number")
    return number, Entry(**fields)


def _path(folder: str, rank: int) -> Path:
    return Path(folder) / f"rank-{rank}.jsonl"


def _stack_path(folder: str, rank: int) -> Path:
    return Path(folder) / f"rank-{rank}.stack"
