"""Notes on what a migration converted, dropped or assumed."""

from enum import Enum
from pathlib import Path

from cobre.io.findings.problems import CaseProblem
from cobre.records import dataclass


class NoteKind(Enum):
    """The kind of a note."""

    CONVERTED = "converted"
    DROPPED = "dropped"
    GUESSED = "guessed"
    NOW_EFFECTIVE = "now effective"


@dataclass(frozen=True, slots=True)
class Note:
    """A note on one change; `file` is relative to the case.

    NOW_EFFECTIVE: the older program ignored it, so that costs may differ now.
    """

    kind: NoteKind
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.file}: {self.text}"


class Notes:
    """Notes collected while a case is converted."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def converted(self, file: str, text: str) -> None:
        """Note that something was converted without loss."""
        self._notes.append(Note(NoteKind.CONVERTED, file, text))

    def dropped(self, file: str, text: str) -> None:
        """Note that something was dropped, because the new format cannot express it."""
        self._notes.append(Note(NoteKind.DROPPED, file, text))

    def guessed(self, file: str, text: str) -> None:
        """Note an assumption about something that the old case does not define."""
        self._notes.append(Note(NoteKind.GUESSED, file, text))

    def now_effective(self, file: str, text: str) -> None:
        """Note that something has an effect now and had none before."""
        self._notes.append(Note(NoteKind.NOW_EFFECTIVE, file, text))

    def all(self) -> tuple[Note, ...]:
        """All notes, in the order in which they were made."""
        return tuple(self._notes)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a migration: directories, notes, and the problems of the new case."""

    old: Path
    new: Path
    notes: tuple[Note, ...]
    problems: tuple[CaseProblem, ...]

    def __str__(self) -> str:
        lines = [f"{self.old} -> {self.new}", *(f"  {note}" for note in self.notes)]
        return "\n".join([*lines, *(f"  still to be looked at: {problem}" for problem in self.problems)])
