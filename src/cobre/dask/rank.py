"""The task of a Dask worker as a rank: join the others, train, and return how it ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from distributed import get_worker

from cobre.comm import create_communicator
from cobre.comm.launch import RankFailure, describe_failure
from cobre.dask.placement import RankAssignment
from cobre.records import dataclass
from cobre.runs.events import Event
from cobre.study.requests import CaseRequest, TrainingRequest
from cobre.study.results import TrainingResult
from cobre.study.stop_request import StopRequest
from cobre.study.training import train_rank

# The runs that this process is a rank of: messages from the client arrive in another thread than the rank's own.
_running: dict[str, StopRequest] = {}


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """Outcome of a rank. An error is a value, so that it arrives complete, and Dask does not retry.

    iterations_emitted: how many iteration events it sent.
    """

    rank: int
    result: TrainingResult | None = None
    failure: RankFailure | None = None
    iterations_emitted: int = 0


def run_rank(assignment: RankAssignment, work: tuple[CaseRequest, TrainingRequest], topic: str | None) -> RankOutcome:
    """Train as one of the ranks. topic: that rank 0 sends its iterations to, or None."""
    case, request = work
    sender = IterationSender(topic if assignment.rank == 0 else None)
    try:
        with (
            _stoppable(assignment.world.run_id, request.time_limit_s) as stop,
            create_communicator(assignment.world) as comm,
        ):
            result = train_rank(comm, replace(case, threads=assignment.threads), request, False, sender.emit, stop)
    except BaseException as error:  # noqa: BLE001 - the client raises it
        return RankOutcome(assignment.rank, failure=describe_failure(error))
    return RankOutcome(assignment.rank, result, iterations_emitted=sender.count)


def ask_to_stop(run_id: str) -> None:
    """End the rank after this iteration, and with it the others; called on a worker by the client."""
    if (stop := _running.get(run_id)) is not None:
        stop.ask()


@contextmanager
def _stoppable(run_id: str, time_limit_s: float | None) -> Iterator[StopRequest]:
    _running[run_id] = stop = StopRequest(time_limit_s)
    try:
        yield stop
    finally:
        del _running[run_id]


class IterationSender:
    """Sender of iterations to the subscribers of a Dask topic; None: sends nothing."""

    def __init__(self, topic: str | None) -> None:
        self._topic = topic
        self._worker = get_worker()
        self.count = 0

    def emit(self, event: Event) -> None:
        """Send an iteration to the topic; returns before it has arrived."""
        if self._topic is not None and event["event"] == "iteration":
            self._worker.log_event(self._topic, dict(event))
            self.count += 1
