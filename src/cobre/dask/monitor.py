"""The client's side of a run: pass on progress, notice a lost worker at once, find the cause of a failure."""

import asyncio
import contextlib
import queue
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from cobre.comm.launch import RankFailure, WorkerError, original_exception
from cobre.dask.placement import RankAssignment
from cobre.dask.rank import RankOutcome, ask_to_stop
from cobre.runs.events import Event, EventListener
from cobre.study.results import TrainingResult

if TYPE_CHECKING:
    from distributed import Client, Future

POLL_S = 0.5  # interval between two checks of which workers are alive
GRACE_S = 20.0  # for ranks to notice that the run is over

EventQueue: TypeAlias = queue.SimpleQueue[Event | None]
"""Iteration events of rank 0; None: a rank has ended."""

EXIT_CODE = 1  # Dask does not tell with which one a worker ended


class RunMonitor:
    """Monitor of a run on a cluster: its events, its workers, and how each rank ended."""

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
        self._is_asked_to_stop = False
        for future in futures:
            future.add_done_callback(lambda _: events.put(None))

    def result(self, emit: EventListener) -> TrainingResult:
        """Return rank 0's result when all ranks have succeeded.

        Otherwise raise WorkerError for the rank that was the cause.

        The first Ctrl-C ends the run after the iteration; the second one leaves the ranks to that and returns.
        """
        try:
            self._wait(emit)
        except BaseException:
            self._ask_to_stop()
            self._wait_for_remaining()
            raise
        if self._failed():
            self._wait_for_remaining()
            raise worker_error(self._assignments, self._outcomes, self._lost)
        end = self._end_of_rank_0()
        self._forward_remaining(end.iterations_emitted, emit)
        if end.result is None:
            raise WorkerError(0, EXIT_CODE, None, f"{self._assignments[0].name} gave no result")
        return end.result

    def _wait(self, emit: EventListener) -> None:
        """Wait until all ranks have ended, or one has failed."""
        while len(self._outcomes) < len(self._assignments) and not self._failed():
            try:
                if (event := self._next_event()) is not None:
                    emit(event)
            except KeyboardInterrupt:
                if self._is_asked_to_stop:
                    raise
                self._is_asked_to_stop = True
            if self._is_asked_to_stop:  # repeated: a rank that had not started did not receive it
                self._ask_to_stop()

    def _next_event(self) -> Event | None:
        try:
            event = self._events.get(timeout=POLL_S)
        except queue.Empty:
            event = None
            self._look_for_lost_workers()
        self._collect()
        self._received += event is not None
        return event

    def _forward_remaining(self, count: int, emit: EventListener) -> None:
        """Forward the events of `count` iterations that were sent before the result, and may still be in transit."""
        deadline = time.monotonic() + GRACE_S
        while self._received < count and time.monotonic() < deadline:
            if (event := self._next_event()) is not None:
                emit(event)

    def _collect(self) -> None:
        for assignment, future in zip(self._assignments, self._futures, strict=True):
            if assignment.rank not in self._outcomes and future.done():
                self._outcomes[assignment.rank] = _end_of(future)

    def _look_for_lost_workers(self) -> None:
        try:
            present = self._client.nthreads()
        except (OSError, TimeoutError):  # the scheduler has gone: Dask ends the tasks, and that is noticed
            return
        gone = {assignment.rank for assignment in self._assignments if assignment.address not in present}
        self._lost |= {rank for rank in gone if not isinstance(self._outcomes.get(rank), RankOutcome)}

    def _failed(self) -> bool:
        return bool(self._lost) or any(_failure(end) is not None for end in self._outcomes.values())

    def _wait_for_remaining(self) -> None:
        """Wait for the other ranks, which end because of the first; a lost worker may become known only now."""
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            self._collect()
            self._look_for_lost_workers()
            if len(self._outcomes.keys() | self._lost) == len(self._assignments):
                return
            with contextlib.suppress(queue.Empty):
                self._events.get(timeout=POLL_S)

    def _ask_to_stop(self) -> None:
        run_id = self._assignments[0].world.run_id
        with contextlib.suppress(OSError, TimeoutError):
            present = self._client.nthreads()
            addresses = [assignment.address for assignment in self._assignments if assignment.address in present]
            self._client.run(ask_to_stop, run_id, workers=addresses, on_error="ignore")

    def _end_of_rank_0(self) -> RankOutcome:
        end = self._outcomes[0]
        assert isinstance(end, RankOutcome), "a rank that failed was found before"  # noqa: S101
        return end


def worker_error(
    assignments: Sequence[RankAssignment], ends: dict[int, RankOutcome | BaseException], lost: set[int]
) -> WorkerError:
    """Return the cause: a lost worker, else a rank that failed by itself, else one that failed because of another."""
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
        (assignments[rank], failure) for rank, end in sorted(ends.items()) if (failure := _failure(end)) is not None
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


def _end_of(future: "Future[Any]") -> RankOutcome | BaseException:
    """Return what the rank returned, or an error of Dask's own: the worker is lost, or the task was cancelled."""
    try:
        end: RankOutcome = future.result(timeout=GRACE_S)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it becomes a WorkerError
        return error
    return end


def _failure(end: RankOutcome | BaseException) -> RankFailure | BaseException | None:
    return end.failure if isinstance(end, RankOutcome) else end
