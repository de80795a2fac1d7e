"""`cobre.dask.train`: the task of each rank on its worker, and the monitor of the run on the client."""

import asyncio
import contextlib
import queue
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from distributed import get_worker

from cobre.comm import create_communicator
from cobre.comm.config import DEFAULT_TIMEOUT_S, MAX_TCP_PORT
from cobre.comm.launch import RankFailure, WorkerError, describe_failure, original_exception
from cobre.core.case import Case
from cobre.dask.placement import RankAssignment, assign_ranks, check_client
from cobre.limits import MAX_COUNT, MAX_THREADS
from cobre.policy.object import Policy
from cobre.policy.store import load_policy
from cobre.records import dataclass
from cobre.runs.events import Event, EventListener
from cobre.study.api import ProgressCallback, progress_listener
from cobre.study.arguments import case_and_overrides, checked_count, checked_seconds, training_request
from cobre.study.preparation.on_ranks import as_case
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, CaseRequest, Overrides, TrainingRequest
from cobre.study.results import TrainingResult
from cobre.study.training.stop_request import StopRequest
from cobre.study.training.train import train_rank

if TYPE_CHECKING:
    from distributed import Client, Future


# The task of a rank on its Dask worker.

_running: dict[str, StopRequest] = {}
"""Stop requests by run in which this process is a rank; the client sets them from another thread."""


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """Outcome of a rank. An error is a value, so that it arrives complete, and Dask does not retry.

    iterations_emitted: number of iteration events sent.
    """

    rank: int
    result: TrainingResult | None = None
    failure: RankFailure | None = None
    iterations_emitted: int = 0


def run_rank(assignment: RankAssignment, work: tuple[CaseRequest, TrainingRequest], topic: str | None) -> RankOutcome:
    """Train as one of the ranks. topic: the Dask topic for the iteration events of rank 0, or None."""
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


def request_stop_of_rank(run_id: str) -> None:
    """Stop this worker's rank, and so all ranks, after the current iteration; called by the client."""
    if (stop := _running.get(run_id)) is not None:
        stop.request_stop()


@contextmanager
def _stoppable(run_id: str, time_limit_s: float | None) -> Iterator[StopRequest]:
    _running[run_id] = stop = StopRequest(time_limit_s)
    try:
        yield stop
    finally:
        del _running[run_id]


class IterationSender:
    """Sender of iteration events to a Dask topic; without a topic it sends nothing."""

    def __init__(self, topic: str | None) -> None:
        self._topic = topic
        self._worker = get_worker()
        self.count = 0

    def emit(self, event: Event) -> None:
        """Send an iteration event to the topic; return before it has arrived."""
        if self._topic is not None and event["event"] == "iteration":
            self._worker.log_event(self._topic, dict(event))
            self.count += 1


# The client's side of a run: progress, lost workers, and the cause of a failure.

POLL_INTERVAL_S = 0.5  # between two checks for lost workers
GRACE_PERIOD_S = 20.0  # for the other ranks to end after a failure

EventQueue: TypeAlias = queue.SimpleQueue[Event | None]
"""Iteration events of rank 0; None: a rank has ended."""

EXIT_CODE = 1  # Dask does not report the exit code of a worker


class RunMonitor:
    """Monitor of a run on a cluster: its events, its workers, and the outcome of each rank."""

    def __init__(
        self,
        client: "Client",
        assignments: Sequence[RankAssignment],
        futures: "Sequence[Future[Any]]",
        events: EventQueue,
    ) -> None:
        self._client = client
        self._assignments = assignments
        self._futures = futures
        self._events = events
        self._outcomes: dict[int, RankOutcome | BaseException] = {}
        self._lost: set[int] = set()
        self._received = 0
        self._is_stopping = False
        for future in futures:
            future.add_done_callback(lambda _: events.put(None))

    def result(self, emit: EventListener) -> TrainingResult:
        """Wait for all ranks and return the result of rank 0.

        The first Ctrl-C stops the run after the current iteration; the second one is raised, and the ranks stop later.

        Raises WorkerError for the rank that caused a failure.
        """
        try:
            self._wait(emit)
        except BaseException:
            self._request_stop()
            self._wait_for_remaining()
            raise
        if self._failed():
            self._wait_for_remaining()
            raise worker_error(self._assignments, self._outcomes, self._lost)
        outcome = self._outcome_of_rank_0()
        self._forward_remaining(outcome.iterations_emitted, emit)
        if outcome.result is None:
            raise WorkerError(0, EXIT_CODE, None, f"{self._assignments[0].name} gave no result")
        return outcome.result

    def _wait(self, emit: EventListener) -> None:
        """Wait until all ranks have ended, or one has failed."""
        while len(self._outcomes) < len(self._assignments) and not self._failed():
            try:
                if (event := self._next_event()) is not None:
                    emit(event)
            except KeyboardInterrupt:
                if self._is_stopping:
                    raise
                self._is_stopping = True
            if self._is_stopping:  # repeated: a rank that had not started has missed the request
                self._request_stop()

    def _next_event(self) -> Event | None:
        try:
            event = self._events.get(timeout=POLL_INTERVAL_S)
        except queue.Empty:
            event = None
            self._detect_lost_workers()
        self._collect()
        self._received += event is not None
        return event

    def _forward_remaining(self, count: int, emit: EventListener) -> None:
        """Forward events that are still in transit, until `count` iterations have been received."""
        deadline = time.monotonic() + GRACE_PERIOD_S
        while self._received < count and time.monotonic() < deadline:
            if (event := self._next_event()) is not None:
                emit(event)

    def _collect(self) -> None:
        for assignment, future in zip(self._assignments, self._futures, strict=True):
            if assignment.rank not in self._outcomes and future.done():
                self._outcomes[assignment.rank] = _outcome_of(future)

    def _detect_lost_workers(self) -> None:
        try:
            connected = self._client.nthreads()
        except (OSError, TimeoutError):  # the scheduler is gone: Dask ends the tasks, which fail
            return
        missing = {assignment.rank for assignment in self._assignments if assignment.address not in connected}
        self._lost |= {rank for rank in missing if not isinstance(self._outcomes.get(rank), RankOutcome)}

    def _failed(self) -> bool:
        return bool(self._lost) or any(_failure(outcome) is not None for outcome in self._outcomes.values())

    def _wait_for_remaining(self) -> None:
        """Wait for the other ranks to end because of the failure; a lost worker may be detected only now."""
        deadline = time.monotonic() + GRACE_PERIOD_S
        while time.monotonic() < deadline:
            self._collect()
            self._detect_lost_workers()
            if len(self._outcomes.keys() | self._lost) == len(self._assignments):
                return
            with contextlib.suppress(queue.Empty):
                self._events.get(timeout=POLL_INTERVAL_S)

    def _request_stop(self) -> None:
        run_id = self._assignments[0].world.run_id
        with contextlib.suppress(OSError, TimeoutError):
            connected = self._client.nthreads()
            addresses = [assignment.address for assignment in self._assignments if assignment.address in connected]
            self._client.run(request_stop_of_rank, run_id, workers=addresses, on_error="ignore")

    def _outcome_of_rank_0(self) -> RankOutcome:
        outcome = self._outcomes[0]
        assert isinstance(outcome, RankOutcome), "a rank that failed was found before"  # noqa: S101
        return outcome


def worker_error(
    assignments: Sequence[RankAssignment], outcomes: dict[int, RankOutcome | BaseException], lost: set[int]
) -> WorkerError:
    """Return the error of the cause: a lost worker, else a rank that failed first, else one that failed as a result."""
    if lost:
        rank = min(lost)
        also = (
            f" Also lost: {', '.join(assignments[other].name for other in sorted(lost - {rank}))}."
            if len(lost) > 1
            else ""
        )
        return WorkerError(
            rank,
            EXIT_CODE,
            None,
            f"Run stopped: {assignments[rank].name} was lost: its process ended, or the cluster lost contact with it. "
            f"Check its log; the usual reason is lack of memory.{also}",
        )
    failures = [
        (assignments[rank], failure)
        for rank, outcome in sorted(outcomes.items())
        if (failure := _failure(outcome)) is not None
    ]
    assignment, cause = min(failures, key=lambda entry: isinstance(entry[1], RankFailure) and entry[1].is_consequence)
    if isinstance(cause, RankFailure):
        inner = original_exception(cause)
        text = f"Run stopped: {assignment.name} raised {cause.summary}\n{cause.traceback_text}"
    else:
        inner = cause
        text = f"Run stopped: {assignment.name}: {cause}"
    error = WorkerError(assignment.rank, EXIT_CODE, inner, text)
    error.__cause__ = inner
    return error


def _outcome_of(future: "Future[Any]") -> RankOutcome | BaseException:
    """Return the outcome of a rank, or an error of Dask: the worker is lost, or the task was cancelled."""
    try:
        outcome: RankOutcome = future.result(timeout=GRACE_PERIOD_S)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it becomes a WorkerError
        return error
    return outcome


def _failure(outcome: RankOutcome | BaseException) -> RankFailure | BaseException | None:
    return outcome.failure if isinstance(outcome, RankOutcome) else outcome


# The function for users.


def train(
    client: "Client",
    case: Case | str | Path,
    *,
    num_workers: int | None = None,
    threads: int | None = None,
    iterations: int | None = None,
    config_overrides: Overrides | None = None,
    progress_callback: ProgressCallback | None = None,
    warm_start: Policy | str | Path | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: int = DEFAULT_CHECKPOINT_INTERVAL,
    resume: bool = False,
    time_limit_s: float | None = None,
    port: int | None = None,
    connect_timeout_s: float = DEFAULT_TIMEOUT_S,
) -> TrainingResult:
    """Train a policy on a Dask cluster, one rank for each worker; the bits are those of `cobre.train`.

    The case and the warm-start policy are read here and sent to the workers, which need no files. Parameters are those
    of `cobre.train`, except:

    num_workers: number of ranks; by default one for each worker of the cluster. A worker is one process and one rank.
    threads: threads of each rank; by default those of its worker.
    checkpoints: a folder on the machine of rank 0, the worker with the first address.
    port: the port on which rank 0 listens for the others; by default a free one. Connections are authenticated by a
    secret of this run, which is sent by Dask's messages; they are not encrypted.
    connect_timeout_s: time for all ranks to join; a worker that is busy with other tasks joins late.

    A lost worker ends the run at once with a WorkerError. Ctrl-C and the time limit stop it after the current
    iteration; the result is that of the iterations so far.
    """
    iterations = checked_count("iterations", iterations, MAX_COUNT)
    threads = checked_count("threads", threads, MAX_THREADS)
    port = checked_count("port", port, MAX_TCP_PORT)
    if connect_timeout_s is None:
        raise TypeError("connect_timeout_s: expected a number of seconds, got None")
    connect_timeout_s = checked_seconds("connect_timeout_s", connect_timeout_s)
    request = training_request(
        warm_start=warm_start,
        checkpoints=checkpoints,
        checkpoint_every=checkpoint_every,
        resume=resume,
        time_limit_s=time_limit_s,
    )
    check_client(client)
    loaded, warnings = as_case(*case_and_overrides(case, config_overrides, iterations))
    if isinstance(request.warm_start, Path):
        request = replace(request, warm_start=load_policy(request.warm_start))
    assignments = assign_ranks(client, num_workers, threads, port, connect_timeout_s)
    events: EventQueue = queue.SimpleQueue()
    with (
        _subscribed(client, events if progress_callback else None) as topic,
        _started(client, assignments, (CaseRequest(loaded, None), request), topic) as futures,
    ):
        result = RunMonitor(client, assignments, futures, events).result(progress_listener(progress_callback))
    return replace(result, warnings=warnings)


@contextmanager
def _subscribed(client: "Client", events: EventQueue | None) -> Iterator[str | None]:
    """Subscribe to a new topic, whose events are put into `events` in order; yield its name, or None."""
    if events is None:
        yield None
        return
    topic = f"cobre-{secrets.token_hex(8)}"
    client.subscribe_topic(topic, lambda event: events.put(event[1]))
    try:
        yield topic
    finally:
        client.unsubscribe_topic(topic)


@contextmanager
def _started(
    client: "Client", assignments: list[RankAssignment], work: tuple[CaseRequest, TrainingRequest], topic: str | None
) -> "Iterator[list[Future[Any]]]":
    """Start a task for each rank, pinned to its worker; at the end all tasks are cancelled."""
    addresses = [assignment.address for assignment in assignments]
    # Sent once to every worker, and not with each task through the scheduler.
    scattered_work = client.scatter([work], workers=addresses, broadcast=True, hash=False)[0]
    futures = [
        client.submit(
            run_rank,
            assignment,
            scattered_work,
            topic,
            key=f"cobre-rank-{assignment.rank}-{assignment.world.run_id}",
            workers=[assignment.address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        for assignment in assignments
    ]
    try:
        yield futures
    finally:
        client.cancel([*futures, scattered_work], force=True)
