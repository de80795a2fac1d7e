"""Noise and the models that turn it into inflows, loads and availabilities; their errors and notes for the user."""

from cobre.errors import ValidationError
from cobre.records import dataclass


class NoiseModelError(ValidationError):
    """A table or setting from which no noise can be made; the message names file, entity and field."""

    def __init__(self, file: str, where: str, problem: str) -> None:
        super().__init__(f"{file}: {where}: {problem}")
        self.file = file
        self.where = where
        self.problem = problem


@dataclass(frozen=True, slots=True)
class NoiseNote:
    """A warning on a noise model: file, subject, and text. kind: a stable name for programs."""

    kind: str
    file: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.text}"
