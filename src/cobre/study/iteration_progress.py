"""Progress inside an iteration, from the number of LPs solved so far.

The solver asks its caller every 50 ms whether to go on; on rank 0 an event is emitted then, at most one a second and
about a hundred in an iteration. Nothing is counted for it that the solver does not count anyway. The first iteration of
a long study reports how long the whole training will take: after ten seconds, from its first LPs, and again from its
first backward LPs, which start from the basis of another opening, as nearly all LPs of a study do.
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
"""Of the time that the iteration has taken so far: a long one emits about 100 events for each factor of e."""


LONG_STUDY_SOLVES = 200_000
"""A study of fewer LPs is over before an estimate helps."""


PILOT_SOLVES = 40
"""LPs that an estimate is made from, at the least: two states with the twenty openings of official decks."""


FIRST_ESTIMATE_S = 10.0
"""After this time the first forward LPs are the basis of an estimate: the backward pass may be minutes away."""


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

    def where(self, done: float) -> dict[str, Any]:
        """Return the pass that an iteration is in after a number of LPs, and in the backward pass its stage."""
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

    With several ranks the LPs of rank 0 stand for all: work is shared evenly, so that it has solved its part of all.
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
        # iterations: done before. check: called first, every time; raises to end the call.
        self._solver = context.solver
        self._ranks = context.comm.size
        self._emit = emit if context.comm.rank == 0 else None
        self._size = IterationSize.of(context.problem, stage_ids, context.split.total)
        self._iteration = iterations
        self._check = check
        self._pilot = None if iterations else Pilot.of(context, self._size, iteration_limit or 0)
        self._began = self._next = 0.0
        self._first_solve = 0

    def around(
        self, iterating: Callable[[], AbstractContextManager[object]]
    ) -> Callable[[], AbstractContextManager[object]]:
        """Return a context manager for an iteration: `iterating`, with its beginning noted."""

        @contextmanager
        def begin() -> Iterator[None]:
            self._iteration += 1
            self._pilot = self._pilot if self._iteration == 1 else None
            self._began = time.monotonic()
            self._next = self._began + INTERVAL_S
            self._first_solve = self._solver.solves_done
            with iterating():
                yield

        return begin

    def check(self) -> None:
        """Check whether to go on, then emit an event if one is due; raises what the check raises."""
        self._check()
        now = time.monotonic()
        if self._emit is None:
            return
        if self._pilot is not None and (facts := self._pilot.estimate(now - self._began, self._done)) is not None:
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
        pace = done / elapsed_s
        if self._size is None or done == 0:
            return {"solves": done, "solves_per_s": pace}
        total = self._size.total
        done = min(done, total)
        return {
            "solves": done,
            "total_solves": total,
            "solves_per_s": pace,
            "seconds_left": (total - done) / pace,
            **self._size.where(done),
        }


@dataclass
class Pilot:
    """Two estimates of a long training: from its first forward LPs, and from its first backward LPs.

    forward: LPs before the backward ones. began: seconds and LPs at the first look in the backward pass.
    """

    total: int
    forward: int
    cores: int
    iterations: int
    forward_passes: int
    cut_bytes: int
    began: tuple[float, int] | None = None
    is_given: bool = False
    is_over: bool = False

    @classmethod
    def of(cls, context: TrainingContext, size: IterationSize | None, iterations: int) -> "Pilot | None":
        """Return the pilot of a training; None for a short one and for trees."""
        if size is None or iterations * size.total < LONG_STUDY_SOLVES:
            return None
        passes = context.split.total
        problem = context.problem
        cores = context.comm.size * context.solver.threads
        cut_bytes = 8 * iterations * passes * (problem.num_stages - 1) * (1 + problem.dimension)
        return cls(size.total, size.forward, cores, iterations, passes, cut_bytes)

    def estimate(self, elapsed_s: float, done: int) -> dict[str, Any] | None:
        """Return the facts of an `estimate` event as soon as there are enough LPs; later ones have more cuts."""
        if self.is_over:
            return None
        if done < self.forward:
            if self.is_given or done < PILOT_SOLVES or elapsed_s < FIRST_ESTIMATE_S:
                return None
            self.is_given = True
            return self._facts(elapsed_s / done)
        if self.began is None:
            self.began = elapsed_s, done
        since, first = self.began
        if done - first < PILOT_SOLVES or elapsed_s <= since:
            return None
        self.is_over = True
        return self._facts((elapsed_s - since) / (done - first))

    def _facts(self, seconds_per_solve: float) -> dict[str, Any]:
        return {
            "seconds": self.iterations * self.total * seconds_per_solve,
            "cores": self.cores,
            "iterations": self.iterations,
            "forward_passes": self.forward_passes,
            "cut_bytes": self.cut_bytes,
        }


# A caller that looks at every iteration and may end the run, wherever the ranks are.
#
# Rank 0 emits an iteration and then waits for the reply on a named pipe, so that the run ends at the same iteration
# whether its ranks are this process or others. A stop takes effect with the next iteration, on which all ranks agree.
