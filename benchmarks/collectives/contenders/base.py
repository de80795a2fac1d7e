"""What the orchestrator asks of every contender."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from collectives.cases import Case, select_cases
from collectives.timing import Durations

WORLD_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What one world measures; small enough to travel on a command line."""

    cases: tuple[str, ...] = ()
    quick: bool = False

    def select(self) -> tuple[Case, ...]:
        """The cases themselves."""
        return select_cases(self.cases, quick=self.quick)


class WorldFailedError(Exception):
    """The ranks of a contender did not come to an end; the text says what they said."""


class Contender(ABC):
    """A library whose ranks can be started.

    name: as on the command line. title: as in the table. settings: what was set to make it fast.
    needs: packages that must be installable, if any.
    """

    name: str
    title: str
    settings: str = "defaults"
    needs: str = ""

    @abstractmethod
    def prepare(self) -> str:
        """Make it ready and return its version, or raise `UnavailableError`."""

    @abstractmethod
    def run(self, size: int, plan: Plan) -> list[Durations]:
        """Start a world, let it measure, and return every rank's durations, or raise `WorldFailedError`."""
