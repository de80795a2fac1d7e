"""When checkpoints are due, and their writing while training runs."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from cobre.core.config import Config
from cobre.io.storage.array_file import Arrays, write_arrays
from cobre.io.storage.atomic import check_writable, remove_leftovers
from cobre.io.storage.confined import remove_file
from cobre.records import dataclass
from cobre.sddp.records.iteration_record import IterationRecord
from cobre.sddp.training.context import TrainingContext
from cobre.study.preparation.fingerprint import Fingerprint
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, DEFAULT_CHECKPOINT_SECONDS, TrainingRequest
from cobre.study.resume.checkpoints import SUFFIX, iteration_of, list_checkpoints, snapshot

# The last iteration is kept all the same: a run resumes from it.
NEVER = 10**9


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """Where and when. first: the iteration of the first one, by default `every`; keep: how many of the newest
    stay.

    seconds: another one is due this long after the last; None: only `every` counts.
    """

    folder: Path
    every: int = DEFAULT_CHECKPOINT_INTERVAL
    first: int | None = None
    keep: int = 2
    seconds: float | None = None

    @classmethod
    def of(cls, request: TrainingRequest, config: Config) -> Self | None:
        """The plan of a request, else of the case, else every ten iterations; None where no checkpoints are kept."""
        if request.checkpoints is None:
            return None
        every, first = DEFAULT_CHECKPOINT_INTERVAL, None
        if request.checkpoint_every is not None:
            every = request.checkpoint_every or NEVER
        elif (asked := config.policy.checkpointing).enabled is False:
            every = NEVER
        elif asked.enabled:
            every, first = asked.interval_iterations, asked.initial_iteration
        seconds = None if every == NEVER else request.checkpoint_seconds or DEFAULT_CHECKPOINT_SECONDS
        return cls(request.checkpoints, every, first, request.keep_checkpoints, seconds)

    def is_due(self, iteration: int, age_s: float = 0.0) -> bool:
        """Whether one is written after this iteration, when the last was written so long ago."""
        first = self.first or self.every
        if self.seconds is not None and age_s >= self.seconds:
            return True
        return iteration >= first and (iteration - first) % self.every == 0


class CheckpointWriter:
    """Writes on rank 0, in a thread of its own: training waits for the copy of what changes only.

    on_written: called with the iteration, the path and the seconds that training waited. resumed_at: the iteration
    that the run resumes from. Checkpoints of an earlier run are removed once there is one of this run.
    """

    def __init__(
        self,
        plan: CheckpointPlan,
        fingerprint: Fingerprint,
        on_written: Callable[[int, Path, float], None],
        resumed_at: int = 0,
    ) -> None:
        check_writable(plan.folder)
        remove_leftovers(plan.folder)
        self._own = {path for path in list_checkpoints(plan.folder) if iteration_of(path) <= resumed_at}
        self._plan = plan
        self._fingerprint = fingerprint
        self._on_written = on_written
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cobre-checkpoint")
        self._pending: Future[None] | None = None
        self._last = time.monotonic()
        self._announced = (0, plan.folder, 0.0)

    def on_checkpoint(self, context: TrainingContext, history: Sequence[IterationRecord], is_last: bool) -> None:
        """Write a checkpoint when one is due; always after the last iteration."""
        if self._pending is not None and self._pending.done():
            self._wait()
        is_kept = len(history) == self._announced[0]  # after an iteration that was dropped there is nothing new
        if is_kept or not (is_last or self._plan.is_due(len(history), time.monotonic() - self._last)):
            return
        self._last = began = time.monotonic()
        self._wait()
        path = self._plan.folder / f"iteration-{len(history):06d}{SUFFIX}"
        facts = {"fingerprint": self._fingerprint.as_dict(), "iterations": len(history)}
        self._pending = self._thread.submit(self._write, path, facts, snapshot(context, history))
        self._announced = (len(history), path, time.monotonic() - began)

    def close(self) -> None:
        """Wait for the last one; raises what went wrong with it."""
        try:
            self._wait()
        finally:
            self._thread.shutdown()

    def _wait(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()
            self._on_written(*self._announced)

    def _write(self, path: Path, facts: dict[str, Any], arrays: Arrays) -> None:
        write_arrays(path, facts, arrays)
        self._own.add(path)
        self._own = set(sorted(self._own, key=iteration_of)[-self._plan.keep :])
        for old in list_checkpoints(self._plan.folder):
            if old not in self._own:
                remove_file(old)
