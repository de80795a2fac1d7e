"""Progress inside an iteration, from the number of LPs solved so far.

The solver polls its caller (`StopSignal::kIntervalNs`); rank 0 then emits an event, at most one per second and about a
hundred per iteration. The first iteration of a long study estimates how long training will take: after ten seconds,
from its first LPs, and again from its first backward LPs, which start from the basis of another opening, as nearly all
LPs do.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from cobre.records import dataclass
from cobre.runs.events import EventListener, new_event
from cobre.sddp.problem.problem import Problem
from cobre.sddp.training.context import TrainingContext

INTERVAL_S = 1.0
"""Shortest time between two events."""

INTERVAL_SHARE = 0.01
"""Shortest time between two events, relative to the time of the iteration so far: 100 events per factor of e."""

LONG_STUDY_SOLVES = 200_000
"""Studies with fewer LPs are over before an estimate helps."""

PILOT_SOLVES = 40
"""Minimum number of LPs of an estimate: two trial points with the twenty openings of official decks."""

FIRST_ESTIMATE_S = 10.0
"""Earliest time of an estimate from forward LPs: the backward pass may be minutes away."""


@dataclass(frozen=True, slots=True)
class IterationSize:
    """LPs of one iteration: a forward pass, then stages from the last to the second, then the lower bound."""

    forward: int
    backward: tuple[tuple[int, int], ...]  # stage id and number of LPs, in the order of solving
    bound: int

    @classmethod
    def of(cls, problem: Problem, stage_ids: Sequence[int], paths: int) -> "IterationSize | None":
        """Return the size of an iteration; None for a tree, whose nodes are solved in another order."""
        if problem.tree is not None:
            return None
        counts = [openings.count for openings in problem.openings]
        stages = range(problem.num_stages - 1, 0, -1)
        return cls(
            forward=paths * problem.num_stages,
            backward=tuple((stage_ids[stage], paths * counts[stage]) for stage in stages),
            bound=counts[0],
        )

    @property
    def total(self) -> int:
        """All LPs of the iteration."""
        return self.forward + sum(count for _, count in self.backward) + self.bound

    def position(self, done: float) -> dict[str, Any]:
        """Return the pass after a number of LPs, with its stage in the backward pass."""
        if done < self.forward:
            return {"pass": "forward"}
        done -= self.forward
        for stage, count in self.backward:
            if done < count:
                return {"pass": "backward", "stage": stage}
            done -= count
        return {"pass": "bound"}


class IterationProgress:
    """An emitter of `progress` events during an iteration.

    LPs of rank 0 are multiplied by the number of ranks: work is shared evenly.
    """

    def __init__(
        self,
        context: TrainingContext,
        stage_ids: Sequence[int],
        emit: EventListener,
        iterations: int,
        check: Callable[[], object],
        iteration_limit: int | None = None,
    ) -> None:
        # iterations: number already done. check: called first, every time; raises to abort the solve.
        self._solver = context.solver
        self._ranks = context.comm.size
        self._emit = emit if context.comm.rank == 0 else None
        self._size = IterationSize.of(context.problem, stage_ids, context.split.total)
        self._iteration = iterations
        self._check = check
        self._estimator = None if iterations else DurationEstimator.of(context, self._size, iteration_limit or 0)
        self._began = self._next = 0.0
        self._first_solve = 0

    def around(
        self, iterating: Callable[[], AbstractContextManager[object]]
    ) -> Callable[[], AbstractContextManager[object]]:
        """Wrap the context manager of an iteration, to record when it begins."""

        @contextmanager
        def begin() -> Iterator[None]:
            self._iteration += 1
            self._estimator = self._estimator if self._iteration == 1 else None
            self._began = time.monotonic()
            self._next = self._began + INTERVAL_S
            self._first_solve = self._solver.solves_done
            with iterating():
                yield

        return begin

    def check(self) -> None:
        """Call the check, then emit an event if one is due. Raises what the check raises."""
        self._check()
        now = time.monotonic()
        if self._emit is None:
            return
        if (
            self._estimator is not None
            and (facts := self._estimator.estimate(now - self._began, self._done)) is not None
        ):
            self._emit(new_event("estimate", **facts))
        if now < self._next:
            return
        elapsed_s = now - self._began
        self._next = now + max(INTERVAL_S, INTERVAL_SHARE * elapsed_s)
        self._emit(new_event("progress", iteration=self._iteration, elapsed_s=elapsed_s, **self._facts(elapsed_s)))

    @property
    def _done(self) -> int:
        """LPs that all ranks have solved in this iteration."""
        return self._ranks * (self._solver.solves_done - self._first_solve)

    def _facts(self, elapsed_s: float) -> dict[str, Any]:
        done = self._done
        solves_per_s = done / elapsed_s
        if self._size is None or done == 0:
            return {"solves": done, "solves_per_s": solves_per_s}
        total = self._size.total
        done = min(done, total)
        return {
            "solves": done,
            "total_solves": total,
            "solves_per_s": solves_per_s,
            "seconds_left": (total - done) / solves_per_s,
            **self._size.position(done),
        }


@dataclass
class DurationEstimator:
    """Two estimates of a long training: from its first forward LPs, and from its first backward LPs.

    forward: LPs of the forward pass. began: seconds and LPs at the first poll in the backward pass.
    """

    total: int
    forward: int
    cores: int
    iterations: int
    forward_passes: int
    cut_bytes: int
    began: tuple[float, int] | None = None
    has_first_estimate: bool = False
    is_done: bool = False

    @classmethod
    def of(cls, context: TrainingContext, size: IterationSize | None, iterations: int) -> "DurationEstimator | None":
        """Return the estimator of a training run; None for a short one and for trees."""
        if size is None or iterations * size.total < LONG_STUDY_SOLVES:
            return None
        passes = context.split.total
        problem = context.problem
        cores = context.comm.size * context.solver.threads
        cut_bytes = 8 * iterations * passes * (problem.num_stages - 1) * (1 + problem.dimension)
        return cls(size.total, size.forward, cores, iterations, passes, cut_bytes)

    def estimate(self, elapsed_s: float, done: int) -> dict[str, Any] | None:
        """Return the facts of an `estimate` event as soon as enough LPs are solved; None otherwise."""
        if self.is_done:
            return None
        if done < self.forward:
            if self.has_first_estimate or done < PILOT_SOLVES or elapsed_s < FIRST_ESTIMATE_S:
                return None
            self.has_first_estimate = True
            return self._facts(elapsed_s / done)
        if self.began is None:
            self.began = elapsed_s, done
        since, first = self.began
        if done - first < PILOT_SOLVES or elapsed_s <= since:
            return None
        self.is_done = True
        return self._facts((elapsed_s - since) / (done - first))

    def _facts(self, seconds_per_solve: float) -> dict[str, Any]:
        return {
            "seconds": self.iterations * self.total * seconds_per_solve,
            "cores": self.cores,
            "iterations": self.iterations,
            "forward_passes": self.forward_passes,
            "cut_bytes": self.cut_bytes,
        }
