"""Why a training run ended: a kind for programs, words for people."""

from enum import StrEnum

from cobre.records import dataclass


class StopKind(StrEnum):
    """What ended a run.

    The first six are rules of the case; `OTHER_RULE` is a stopping rule from outside the package.
    """

    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    BOUND_STALLING = "bound_stalling"
    SIMULATION = "simulation"
    GAP = "gap"
    UPPER_BOUND = "upper_bound"
    OTHER_RULE = "other_rule"
    REQUESTED = "requested"
    RUN_TIME_LIMIT = "run_time_limit"
    TERMINATED = "terminated"
    INTERRUPTED = "interrupted"

    @property
    def has_converged(self) -> bool:
        """Whether a rule that judges the bounds was satisfied."""
        looking = (StopKind.BOUND_STALLING, StopKind.SIMULATION, StopKind.GAP, StopKind.UPPER_BOUND)
        return self in (*looking, StopKind.OTHER_RULE)

    @property
    def is_interruption(self) -> bool:
        """Whether the run ended from outside, before a rule of the case or its caller said so."""
        return self in (StopKind.RUN_TIME_LIMIT, StopKind.TERMINATED, StopKind.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ended: `kind` for programs, `reason` for people."""

    kind: StopKind
    reason: str
