"""`train` on a cluster: what `cobre.train` is on a machine."""

import queue
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.comm.config import DEFAULT_TIMEOUT_S, MAX_TCP_PORT
from cobre.core.case import Case
from cobre.dask.monitor import EventQueue, RunMonitor
from cobre.dask.placement import RankAssignment, assign_ranks, check_client
from cobre.dask.rank import run_rank
from cobre.policy.object import Policy
from cobre.policy.store import load_policy
from cobre.study.api import ProgressCallback, progress_listener
from cobre.study.placement import checked_count, checked_seconds, training_request
from cobre.study.preparation.study_cache import as_case, case_and_overrides
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, CaseRequest, Overrides, TrainingRequest
from cobre.study.results import TrainingResult
from cobre.wording import MAX_COUNT, MAX_THREADS

if TYPE_CHECKING:
    from distributed import Client, Future


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

    The case and the policy to begin with are read here and sent to the workers, which need no files. Everything that
    `cobre.train` has too means the same; what differs:

    num_workers: ranks; by default as many as the cluster has workers. Each worker is one process and one rank.
    threads: of each rank; by default as many as its worker has.
    checkpoints: a folder as rank 0's worker sees it; rank 0 is the worker with the first address.
    port: where rank 0 listens for the others; by default one that is free. The connections carry a secret of this run
    alone, which travels by Dask's own messages; they are not encrypted.
    connect_timeout_s: how long to wait until all ranks have joined; a worker that is busy with other tasks joins late.

    A worker that is lost ends the run at once with a WorkerError. Ctrl-C and the time limit end it after the iteration,
    and the result is what there is by then.
    """
    iterations = checked_count("iterations", iterations, MAX_COUNT)
    threads = checked_count("threads", threads, MAX_THREADS)
    port = checked_count("port", port, MAX_TCP_PORT)
    if connect_timeout_s is None:
        raise TypeError("connect_timeout_s must be a number of seconds, not None")
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
    """Subscribe to the topic; its events go into `events`, in the order in which they were sent."""
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
    """Start a task for each rank, tied to its worker; at the end Dask forgets all of them."""
    addresses = [assignment.address for assignment in assignments]
    # Once to every worker, and not once for each task through the scheduler.
    sent = client.scatter([work], workers=addresses, broadcast=True, hash=False)[0]
    futures = [
        client.submit(
            run_rank,
            assignment,
            sent,
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
        client.cancel([*futures, sent], force=True)
