"""The method in one place: `train` and the iteration that it repeats."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cobre.comm import Communicator
from cobre.sddp.events import IterationRecord, PhaseTimes
from cobre.sddp.plugins.interfaces import CutSelection, StoppingRule
from cobre.sddp.training.backward import make_cuts
from cobre.sddp.training.bounds import lower_bound
from cobre.sddp.training.context import SolveCounter, TrainingContext
from cobre.sddp.training.exchange import gather_cuts, gather_rows, share_bases
from cobre.sddp.training.forward import run_forward
from cobre.sddp.training.selection import apply_selection

Listener = Callable[[IterationRecord], None]


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """Bounds by iteration and why the run ended, in words."""

    history: tuple[IterationRecord, ...]
    stop_reason: str


def train(
    context: TrainingContext, rules: Sequence[StoppingRule], selection: CutSelection | None, listener: Listener
) -> TrainingOutcome:
    """Iterate until a rule says stop."""
    history: list[IterationRecord] = []
    while True:
        record = iterate(context, len(history) + 1, selection)
        history.append(record)
        listener(record)
        if reason := agree_to_stop(context.comm, rules, history):
            return TrainingOutcome(tuple(history), reason)


def iterate(context: TrainingContext, iteration: int, selection: CutSelection | None) -> IterationRecord:
    """Forward, gather states, backward, gather cuts, bounds."""
    comm, pool, split, stages = context.comm, context.pool, context.split, context.problem.num_stages
    context.counter = SolveCounter()
    clock = Clock()

    paths = run_forward(context, iteration)
    clock.lap("forward")
    costs = gather_rows(comm, split, paths.costs.reshape(-1, 1), "path costs")[:, 0]
    states = gather_rows(comm, split, np.concatenate(paths.states, axis=1), "trial states")
    clock.lap("exchange")

    slots = pool.open_slots(iteration, split.total)
    for stage in range(stages - 1, 0, -1):
        own = make_cuts(context, iteration, stage, paths)
        clock.lap("backward")
        pool.write(stage - 1, slots, gather_cuts(comm, split, own, f"cuts of stage {stage - 1}"))
        clock.lap("exchange")
    context.bases = share_bases(comm, [context.basis_from(bases) for bases in paths.bases])
    clock.lap("exchange")

    bound_value = lower_bound(context, iteration)
    clock.lap("bound")
    if selection is not None:
        context.visited.append(states)
        if selection.is_due(iteration):
            apply_selection(pool, selection, context.visited, iteration)
    return _record(context, iteration, bound_value, costs, clock)


def agree_to_stop(comm: Communicator, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]) -> str | None:
    """Rank 0 decides, for clocks differ: the reason in words, or None."""
    reasons = [rule.reason_to_stop(history) for rule in rules]
    first = next((number for number, reason in enumerate(reasons) if reason), -1)
    verdict = np.array([first], np.int64)
    comm.broadcast(verdict, 0, label="stop or go on")
    agreed = int(verdict[0])
    return None if agreed < 0 else reasons[agreed] or "rank 0 asked to stop"


class Clock:
    """Wall seconds by phase."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.seconds = dict.fromkeys(("forward", "backward", "bound", "exchange"), 0.0)

    def lap(self, phase: str) -> None:
        """Everything since the last lap was this phase."""
        now = time.monotonic()
        self.seconds[phase] += now - self._last
        self._last = now


def _record(context: TrainingContext, iteration: int, lower: float, costs: np.ndarray, clock: Clock) -> IterationRecord:
    mean, spread = mean_and_std(costs.tolist())
    counter, seconds = context.counter, clock.seconds
    times = PhaseTimes(seconds["forward"], seconds["backward"], seconds["bound"], seconds["exchange"], counter.solver_s)
    return IterationRecord(
        iteration=iteration,
        lower_bound=lower,
        upper_bound=mean,
        upper_bound_std=spread,
        forward_passes=len(costs),
        solves=counter.solves,
        simplex_iterations=counter.simplex_iterations,
        cuts=context.pool.count,
        elapsed_s=time.monotonic() - context.began,
        times=times,
    )


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Added in scenario order; the standard deviation is that of a sample, 0 for a single value."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, float((sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5)
