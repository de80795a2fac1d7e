"""Hooks of a training run: who is informed of iterations, and who may stop it between two of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from cobre.sddp.records.iteration_record import IterationRecord
from cobre.sddp.records.stop import Stop, StopKind
from cobre.sddp.training.context import TrainingContext


class Interruption(IntEnum):
    """Why a run ends from outside; the largest of all ranks' wins."""

    NONE = 0
    REQUESTED = 1
    TIME_LIMIT = 2
    TERMINATED = 3
    INTERRUPTED = 4

    @property
    def stop(self) -> Stop | None:
        """The stop that was asked for; None where nobody has asked."""
        return _STOPS.get(self)


_STOPS = {
    Interruption.REQUESTED: Stop(StopKind.REQUESTED, "the caller asked to stop"),
    Interruption.TIME_LIMIT: Stop(StopKind.RUN_TIME_LIMIT, "the time limit of this run was reached"),
    Interruption.TERMINATED: Stop(StopKind.TERMINATED, "terminated (SIGTERM)"),
    Interruption.INTERRUPTED: Stop(StopKind.INTERRUPTED, "interrupted (Ctrl-C)"),
}


def _ignore_iteration(_: IterationRecord) -> None:
    """The default of `on_iteration`: does nothing."""


def no_checkpoint(_: TrainingContext, _history: Sequence[IterationRecord], _is_last: bool) -> None:
    """The default of `on_checkpoint`: writes no checkpoint."""


def _never() -> Interruption:
    return Interruption.NONE


@dataclass(frozen=True, slots=True)
class TrainingHooks:
    """Called on every rank.

    on_iteration: once an iteration is whole, with its record. on_checkpoint: then, with what a checkpoint is made of:
    the context, the whole history, and whether it was the last iteration. poll_interruption: asked once an iteration;
    what any rank answers, all ranks do.
    """

    on_iteration: Callable[[IterationRecord], None] = _ignore_iteration
    on_checkpoint: Callable[[TrainingContext, Sequence[IterationRecord], bool], None] = no_checkpoint
    poll_interruption: Callable[[], Interruption] = _never
