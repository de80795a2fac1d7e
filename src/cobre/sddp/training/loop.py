"""The SDDP method: `train`, and the iteration that it repeats, `iterate`."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import IntEnum

import numpy as np

from cobre.comm import CollectiveFailedError
from cobre.comm.errors import AbortedError, PeerLostError
from cobre.core.arrays import Floats
from cobre.core.bounds import UpperBound
from cobre.core.confidence import mean_and_std
from cobre.core.policy_cost import PolicyCost, latest_cost
from cobre.core.stopping import Stop, StopKind
from cobre.records import dataclass
from cobre.sddp.iteration_records import WIDTH, IterationRecord, IterationResult, PhaseTimes, RankLoad, from_vector
from cobre.sddp.plugins.interfaces import CutSelection, StoppingRule
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.team import share_bases
from cobre.sddp.training.context import StateMark, TrainingContext, TrainingState
from cobre.sddp.training.passes import (
    add_cuts,
    expected_first_stage_end,
    first_bases,
    first_stage_costs,
    lower_bound_of,
    path_costs,
    plan_backward,
    run_forward,
)
from cobre.sddp.training.policy_cost import BackwardCosts, measure_trial_points
from cobre.sddp.training.select_cuts import apply_selection
from cobre.sddp.training.tree_iteration import iterate_tree
from cobre.sddp.upper_bounds.policy_costs import simulated_costs, upper_bounds
from cobre.solver.batches import SolveStatistics

# Training callbacks, and interruptions from outside, between two iterations or inside one.


class Interruption(IntEnum):
    """Reason for which a run ends from outside; the largest of all ranks' wins."""

    NONE = 0
    REQUESTED = 1
    TIME_LIMIT = 2
    TERMINATED = 3
    INTERRUPTED = 4

    @property
    def stop(self) -> Stop | None:
        """The stop that was requested; None if there is no request."""
        return STOP_BY_INTERRUPTION.get(self)


STOP_BY_INTERRUPTION = {
    Interruption.REQUESTED: Stop(StopKind.REQUESTED, "the caller asked to stop"),
    Interruption.TIME_LIMIT: Stop(StopKind.RUN_TIME_LIMIT, "the time limit of this run was reached"),
    Interruption.TERMINATED: Stop(StopKind.TERMINATED, "terminated (SIGTERM)"),
    Interruption.INTERRUPTED: Stop(StopKind.INTERRUPTED, "interrupted (Ctrl-C)"),
}


class IterationDropped(BaseException):
    """Raised inside an iteration that must not be finished.

    Raised when an iteration starts, by the solver or a communicator call, or between two stages of cut selection. The
    state of a run is restored from a `StateMark`.
    """

    def __init__(self, interruption: Interruption) -> None:
        super().__init__(interruption)
        self.interruption = interruption

    def __str__(self) -> str:
        return _dropped_in_words(self.interruption)


def _dropped_in_words(interruption: Interruption) -> str:
    stop = interruption.stop
    return f"dropped the iteration: {stop.reason if stop else 'no reason given'}"


def drop_reason(error: BaseException, own_interruption: Interruption) -> Interruption:
    """Return why an error means that an iteration was dropped, here or on another rank; NONE for any other failure.

    own_interruption: of this rank. Another rank gives the reason when it aborts; if it exited before that was read,
    this rank was interrupted, too.
    """
    if isinstance(error, IterationDropped):
        return error.interruption
    if not isinstance(error, (AbortedError, PeerLostError)):
        return Interruption.NONE
    received = [kind for kind in STOP_BY_INTERRUPTION if _dropped_in_words(kind) in str(error)]
    return max(received, default=own_interruption)


def no_checkpoint(_: TrainingState, _history: Sequence[IterationRecord], _is_last: bool) -> None:
    """Write no checkpoint: the default of `on_checkpoint`."""


@dataclass(frozen=True, slots=True)
class TrainingHooks:
    """Training callbacks, called on every rank.

    on_iteration: with the record of each complete iteration. on_checkpoint: after it, with the contents of a
    checkpoint: the state, the whole history, and whether it was the last iteration. poll_interruption: called once an
    iteration; all ranks act on the answer of any rank. iteration_guard: entered for each iteration; inside it,
    `IterationDropped` may be raised.
    """

    on_iteration: Callable[[IterationRecord], None] = lambda _: None
    on_checkpoint: Callable[[TrainingState, Sequence[IterationRecord], bool], None] = no_checkpoint
    poll_interruption: Callable[[], Interruption] = lambda: Interruption.NONE
    iteration_guard: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """Bounds by iteration, and why the run ended.

    is_dropped: the last iteration was dropped, and ranks may be gone: no more collectives.
    """

    history: tuple[IterationRecord, ...]
    stop: Stop
    is_dropped: bool = False


def train(
    context: TrainingContext,
    rules: Sequence[StoppingRule],
    selection: CutSelection | None,
    hooks: TrainingHooks,
    history: Sequence[IterationRecord] = (),
) -> TrainingOutcome:
    """Iterate until a stopping rule or an interruption ends the run. history: iterations that are done already.

    A dropped iteration is rolled back; the run ends with the previous one. Raises `IterationDropped` when
    the first iteration is dropped.
    """
    done = list(history)
    if done and (stop := stop_at_resume(rules, done)):
        return TrainingOutcome(tuple(done), stop)
    while True:
        before = context.state.mark()
        try:
            with hooks.iteration_guard():
                record, stop = _run_iteration(context, rules, selection, hooks, done)
        except (IterationDropped, CollectiveFailedError) as error:
            dropped = _drop_iteration(context, before, hooks, error)
            if not done or (stop := dropped.stop) is None:
                raise IterationDropped(dropped) from error
            hooks.on_checkpoint(context.state, done, True)
            return TrainingOutcome(tuple(done), stop, is_dropped=True)
        done.append(record)
        hooks.on_iteration(record)
        hooks.on_checkpoint(context.state, done, stop is not None)
        if stop is not None:
            return TrainingOutcome(tuple(done), stop)


def _run_iteration(
    context: TrainingContext,
    rules: Sequence[StoppingRule],
    selection: CutSelection | None,
    hooks: TrainingHooks,
    done: Sequence[IterationRecord],
) -> tuple[IterationRecord, Stop | None]:
    tree = context.problem.tree
    result = (
        iterate(context, len(done) + 1, selection, reads_first_stage=any(rule.reads_first_stage for rule in rules))
        if tree is None
        else iterate_tree(context, tree, len(done) + 1, selection)
    )
    history = [*done, iteration_record(context, result, done)]
    return finish_iteration(context, rules, history, hooks.poll_interruption())


def _drop_iteration(
    context: TrainingContext, before: StateMark, hooks: TrainingHooks, error: BaseException
) -> Interruption:
    """Restore the state before the iteration and abort the other ranks; raise errors of any other cause again."""
    reason = drop_reason(error, hooks.poll_interruption())
    if reason is Interruption.NONE:
        raise error
    if context.comm.size > 1:
        context.comm.abort(str(IterationDropped(reason)))
    context.state.restore(before)
    return reason


def iterate(
    context: TrainingContext, iteration: int, selection: CutSelection | None, *, reads_first_stage: bool = False
) -> IterationResult:
    """Run one iteration: forward pass, backward pass that shares cuts at each stage, lower bound, cut selection.

    Costs of paths are gathered after the forward pass; states only where cut selection or an export reads them.
    reads_first_stage: whether a stopping rule reads the state at the end of the first stage.
    """
    problem, pool, split, team, own = context.problem, context.pool, context.split, context.team, context.own_rows
    state, meter = context.state, context.meter
    meter.restart()

    # Forward pass: the team's paths under the current policy
    paths = run_forward(context, iteration)
    slots = pool.reserve_slots(iteration, split.total)
    plans = plan_backward(context, paths, slots, range(problem.num_stages - 1, 0, -1))
    meter.lap("forward")
    team.wait("paths")
    costs = context.gather(split, path_costs(problem, paths, own).reshape(-1, 1), "path costs")[:, 0]
    if state.visited.are_read(selection):
        meter.count_bytes("trial states", state.visited.add(context.comm, split, paths.states[:, own]))
    meter.lap("exchange")

    # Backward pass: cuts of every stage at the trial points
    drawn_costs = [add_cuts(context, iteration, plan, paths) for plan in plans][::-1]
    state.bases = share_bases(context.comm, team, first_bases(paths))
    meter.count_bytes("bases", sum(bases.status.nbytes + bases.cuts.nbytes for bases in state.bases))
    meter.lap("exchange")

    # Lower bound, cost of the policy, cut selection
    first_costs = first_stage_costs(context, iteration)
    bound_value = lower_bound_of(problem, first_costs)
    first_stage_end = expected_first_stage_end(context, iteration) if reads_first_stage else None
    meter.lap("bound")
    backward = BackwardCosts(iteration, slots, first_costs[0], drawn_costs)
    trial_points, cost_sample = measure_trial_points(context, paths, backward)
    meter.lap("exchange")
    if selection is not None and selection.is_due(iteration):
        states, poll = state.selection_states, context.solver.poll
        exchanged = apply_selection(context.comm, pool, selection, state.visited, iteration, states, poll)
        meter.count_bytes("active cuts", exchanged)
        meter.lap("bound")
    return IterationResult(iteration, bound_value, costs, None, trial_points, cost_sample, first_stage_end)


# The end of an iteration: one exchange in which ranks agree whether to stop, and share their loads.


# Columns of the exchanged table, one row for each rank; solver statistics and the work intervals follow.
RULE, INTERRUPTION, SOLVER_S, EXCHANGE_S, FIRST_COUNT = range(5)
FIRST_WORK_INTERVAL = FIRST_COUNT + WIDTH


def iteration_record(
    context: TrainingContext, result: IterationResult, done: Sequence[IterationRecord] = ()
) -> IterationRecord:
    """Return the record of an iteration as this rank knows it; `finish_iteration` adds the work of other ranks.

    done: earlier iterations.
    """
    is_exact = result.exact is not None
    mean, spread = (result.exact, 0.0) if result.exact is not None else mean_and_std(result.costs.tolist())
    total, seconds = context.meter.solves.total, context.meter.seconds
    times = PhaseTimes(seconds["forward"], seconds["backward"], seconds["bound"], seconds["exchange"], total.seconds)
    return IterationRecord(
        iteration=result.iteration,
        lower_bound=result.lower_bound,
        upper_bound=mean,
        upper_bound_std=spread,
        forward_passes=len(result.costs),
        solves=total.solves,
        simplex_iterations=total.pivots,
        cuts=context.pool.count,
        elapsed_s=time.monotonic() - context.state.began,
        times=times,
        cuts_active=int(context.pool.active.sum()),
        is_exact=is_exact,
        trial_points=result.trial_points,
        cost_sample=result.cost_sample,
        policy_cost=_policy_cost(context, result, done),
        first_stage_end=result.first_stage_end,
    )


def _policy_cost(
    context: TrainingContext, result: IterationResult, done: Sequence[IterationRecord]
) -> PolicyCost | None:
    if result.exact is not None:
        return PolicyCost(result.exact, 0.0)
    samples = [*(record.cost_sample for record in done), result.cost_sample]
    return latest_cost(samples, is_estimate=not context.problem.is_risk_neutral)


def finish_iteration(
    context: TrainingContext,
    rules: Sequence[StoppingRule],
    history: Sequence[IterationRecord],
    interruption: Interruption,
) -> tuple[IterationRecord, Stop | None]:
    """Return the last record with all ranks' work in it, and why to stop, or None.

    Rank 0 applies the rules, because clocks differ; an interruption counts on whichever rank it arrived.
    """
    reasons = _reasons(rules, history, simulated_costs(context, rules, history), upper_bounds(context, rules, history))
    rule = next((number for number, reason in enumerate(reasons) if reason), -1)
    table = _gather(context, rule, interruption)
    solver = from_vector(table[:, FIRST_COUNT:FIRST_WORK_INTERVAL].sum(axis=0))
    total = sum(solver.values(), SolveStatistics())
    record = replace(
        history[-1],
        solves=total.solves,
        simplex_iterations=total.pivots,
        solver=solver,
        loads=_loads(table),
        traffic_bytes=dict(context.meter.traffic_bytes),
    )
    number = int(table[0, RULE])
    if number >= 0:
        return record, Stop(rules[number].kind, reasons[number] or "rank 0 asked to stop")
    return record, Interruption(int(table[:, INTERRUPTION].max())).stop


def stop_at_resume(rules: Sequence[StoppingRule], history: Sequence[IterationRecord]) -> Stop | None:
    """Return the stop of the first rule with a reason; the history is the same on all ranks already."""
    reasons = _reasons(rules, history)
    return next((Stop(rule.kind, reason) for rule, reason in zip(rules, reasons, strict=True) if reason), None)


def _reasons(
    rules: Sequence[StoppingRule],
    history: Sequence[IterationRecord],
    simulated: Floats | None = None,
    bounds: Sequence[UpperBound | None] | None = None,
) -> list[str | None]:
    rule_bounds = [None] * len(rules) if bounds is None else bounds
    return [rule.reason_to_stop(history, simulated, bound) for rule, bound in zip(rules, rule_bounds, strict=True)]


def _gather(context: TrainingContext, rule: int, interruption: Interruption) -> Floats:
    meter = context.meter
    facts = [rule, int(interruption), meter.solves.total.seconds, meter.seconds["exchange"]]
    own = np.array([[*facts, *meter.solves.as_vector(), *meter.work]], np.float64)
    size = context.comm.size
    return context.gather(WorkSplit(size, size), own, "end of the iteration")


def _loads(table: Floats) -> tuple[RankLoad, ...]:
    """Return the load of each rank. Imbalance: how long it waits for ranks with more work between two exchanges."""
    work = table[:, FIRST_WORK_INTERVAL:]
    idle_s = (work.max(axis=0) - work).sum(axis=1)
    columns = (work.sum(axis=1), table[:, EXCHANGE_S], idle_s, table[:, SOLVER_S])
    return tuple(RankLoad(*map(float, row)) for row in zip(*columns, strict=True))
