"""Notes on what a migration converted, dropped or assumed."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from cobre.io.findings.problems import CaseProblem


class NoteKind(Enum):
    """What became of a part of the old case."""

    CONVERTED = "converted"
    DROPPED = "dropped"
    GUESSED = "guessed"
    NOW_EFFECTIVE = "now effective"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was done; `file` is relative to the case.

    NOW_EFFECTIVE: the older program read it and did not use it; costs may differ for that reason.
    """

    kind: NoteKind
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.file}: {self.text}"


class Notes:
    """A list that grows while a case is converted."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def converted(self, file: str, text: str) -> None:
        """Note that something was converted without loss."""
        self._notes.append(Note(NoteKind.CONVERTED, file, text))

    def dropped(self, file: str, text: str) -> None:
        """Something that the new format cannot express."""
        self._notes.append(Note(NoteKind.DROPPED, file, text))

    def guessed(self, file: str, text: str) -> None:
        """Something that the old case does not say."""
        self._notes.append(Note(NoteKind.GUESSED, file, text))

    def now_effective(self, file: str, text: str) -> None:
        """Something that had no effect before."""
        self._notes.append(Note(NoteKind.NOW_EFFECTIVE, file, text))

    def all(self) -> tuple[Note, ...]:
        """All notes, in the order in which they were made."""
        return tuple(self._notes)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What was written where, what was done to it, and what is still wrong with it."""

    old: Path
    new: Path
    notes: tuple[Note, ...]
    problems: tuple[CaseProblem, ...]

    def __str__(self) -> str:
        lines = [f"{self.old} -> {self.new}", *(f"  {note}" for note in self.notes)]
        return "\n".join([*lines, *(f"  still to be looked at: {problem}" for problem in self.problems)])
