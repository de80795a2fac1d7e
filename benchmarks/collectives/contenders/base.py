"""Interface between the orchestrator and a contender."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from collectives.cases import Case, select_cases
from collectives.timing import Durations

WORLD_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Measurements of one world; small enough to travel on a command line."""

    cases: tuple[str, ...] = ()
    quick: bool = False

    def select(self) -> tuple[Case, ...]:
        """Return the cases of this plan."""
        return select_cases(self.cases, quick=self.quick)


class WorldFailedError(Exception):
    """The ranks of a contender did not come to an end; the text says what they said."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A row of the table. name: as in comparisons. title: as in the table. settings: what was set to make it fast."""

    name: str
    title: str
    settings: str = "defaults"


class Contender(ABC):
    """A library whose ranks can be started.

    name: as on the command line. needs: packages that must be installable, if any.
    entrants: what its worlds measure; more than one where they take turns in the same processes.
    """

    name: str
    entrants: tuple[Entrant, ...]
    needs: str = ""

    @abstractmethod
    def prepare(self) -> str:
        """Make it ready and return its version, or raise `UnavailableError`."""

    @abstractmethod
    def run(self, size: int, plan: Plan) -> list[list[Durations]]:
        """Start a world and let it measure: durations by entrant, then by rank, or `WorldFailedError`."""
