"""Journals that ranks write case by case, so that a crash or a hang loses only the case in which it happens."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from cobre.comm.testing.case import Value


@dataclass(frozen=True, slots=True)
class Entry:
    """How one case ended on one rank."""

    value: Value = None
    error: str = ""
    seconds: float = 0.0


class JournalWriter:
    """Appends one line per case, flushed before the next case begins."""

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
    """The entries of one rank by the number of the case."""
    try:
        lines = _path(folder, rank).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return dict(_entry(line) for line in lines if line.endswith("}"))


def read_stack(folder: str, rank: int) -> str:
    """The stack of a rank that exceeded the time limit of a case; else empty."""
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
