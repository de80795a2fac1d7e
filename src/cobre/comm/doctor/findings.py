"""What the doctor says: plain facts, and a verdict on each backend."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine, and advice where it is not as it should be."""

    name: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a backend is usable here, why or why not, and what to do."""

    backend: str
    is_usable: bool
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found."""

    verdicts: Sequence[Verdict]
    selection: Finding
    sections: dict[str, Sequence[Finding]]

    @property
    def is_healthy(self) -> bool:
        """Whether what every installation should have is usable: local and shm."""
        usable = {verdict.backend for verdict in self.verdicts if verdict.is_usable}
        return {"local", "shm"} <= usable
