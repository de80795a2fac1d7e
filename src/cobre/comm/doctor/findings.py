"""The results of the doctor: facts about the machine, and the status of each backend."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine, with advice if something should be changed."""

    name: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """Whether a backend is usable here, why or why not, and what to do about it."""

    backend: str
    is_usable: bool
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found.

    backends: the status of each. selection: the backend that `create_communicator()` chooses in this environment.
    sections: findings by title, as they are printed.
    """

    backends: Sequence[BackendStatus]
    selection: Finding
    sections: dict[str, Sequence[Finding]]

    @property
    def is_healthy(self) -> bool:
        """Whether the backends that every installation should have, local and shm, are usable."""
        usable = {status.backend for status in self.backends if status.is_usable}
        return {"local", "shm"} <= usable
