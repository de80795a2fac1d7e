"""Notes for the user on a noise model that can be used."""

from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class NoiseNote:
    """A warning: in which file, concerning what, and what was done about it."""

    file: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.text}"
