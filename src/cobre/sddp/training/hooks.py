"""Hooks of a training run: who is informed of iterations, and who may stop it, between two of them or in one."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum

from cobre.comm.errors import AbortedError, PeerLostError
from cobre.records import dataclass
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


class IterationDropped(BaseException):
    """Raised inside an iteration that must not be finished.

    From the solver or a communicator call only, so that the state of a run is never left between two statements.
    """

    def __init__(self, interruption: Interruption) -> None:
        super().__init__(interruption)
        self.interruption = interruption

    def __str__(self) -> str:
        return _dropped_in_words(self.interruption)


def _dropped_in_words(interruption: Interruption) -> str:
    stop = interruption.stop
    return f"dropped the iteration: {stop.reason if stop else 'no reason given'}"


def why_dropped(error: BaseException, own: Interruption) -> Interruption:
    """Why this error means that an iteration was dropped, here or on another rank; NONE for any other failure.

    own: what this rank has been asked for. Another rank says why when it aborts; it may have exited before that was
    read, but then this rank was asked as well.
    """
    if isinstance(error, IterationDropped):
        return error.interruption
    if not isinstance(error, (AbortedError, PeerLostError)):
        return Interruption.NONE
    told = [kind for kind in _STOPS if _dropped_in_words(kind) in str(error)]
    return max(told, default=own)


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
    what any rank answers, all ranks do. iterating: entered for each iteration; inside of it, `IterationDropped` may be
    raised.
    """

    on_iteration: Callable[[IterationRecord], None] = _ignore_iteration
    on_checkpoint: Callable[[TrainingContext, Sequence[IterationRecord], bool], None] = no_checkpoint
    poll_interruption: Callable[[], Interruption] = _never
    iterating: Callable[[], AbstractContextManager[object]] = nullcontext
