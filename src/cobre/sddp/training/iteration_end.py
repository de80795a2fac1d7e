"""The end of an iteration: one exchange in which ranks agree whether to stop, and share their loads."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import mean_and_std
from cobre.sddp.plugins.interfaces import StoppingRule
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.records import phases
from cobre.sddp.records.iteration_record import IterationRecord, PhaseTimes, RankLoad
from cobre.sddp.records.policy_cost import PolicyCost, latest_cost
from cobre.sddp.records.stop import Stop
from cobre.sddp.records.upper_bound import UpperBound
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.evaluate import simulated_costs, upper_bounds
from cobre.sddp.training.hooks import Interruption
from cobre.sddp.training.iteration_result import IterationResult
from cobre.solver.statistics import SolveStatistics

# Columns of the exchanged table, one row for each rank; what the solver did and the pieces of work follow.
RULE, INTERRUPTION, SOLVER_S, EXCHANGE_S, FIRST_COUNT = range(5)
FIRST_PIECE = FIRST_COUNT + phases.WIDTH


def iteration_record(
    context: TrainingContext, measured: IterationResult, done: Sequence[IterationRecord] = ()
) -> IterationRecord:
    """The record of an iteration as this rank knows it; `finish_iteration` adds what other ranks did.

    done: earlier iterations.
    """
    is_exact = measured.exact is not None
    mean, spread = (measured.exact, 0.0) if measured.exact is not None else mean_and_std(measured.costs.tolist())
    total, seconds = context.counter.total, measured.clock.seconds
    times = PhaseTimes(seconds["forward"], seconds["backward"], seconds["bound"], seconds["exchange"], total.seconds)
    return IterationRecord(
        iteration=measured.iteration,
        lower_bound=measured.lower_bound,
        upper_bound=mean,
        upper_bound_std=spread,
        forward_passes=len(measured.costs),
        solves=total.solves,
        simplex_iterations=total.pivots,
        cuts=context.pool.count,
        elapsed_s=time.monotonic() - context.began,
        times=times,
        cuts_active=int(context.pool.active.sum()),
        is_exact=is_exact,
        trial_points=measured.trial_points,
        cost_sample=measured.cost_sample,
        policy_cost=_policy_cost(context, measured, done),
    )


def _policy_cost(
    context: TrainingContext, measured: IterationResult, done: Sequence[IterationRecord]
) -> PolicyCost | None:
    if measured.exact is not None:
        return PolicyCost(measured.exact, 0.0)
    samples = [*(record.cost_sample for record in done), measured.cost_sample]
    return latest_cost(samples, is_estimate=not context.problem.is_risk_neutral)


def finish_iteration(
    context: TrainingContext,
    rules: Sequence[StoppingRule],
    history: Sequence[IterationRecord],
    measured: IterationResult,
    interruption: Interruption,
) -> tuple[IterationRecord, Stop | None]:
    """The last record with all ranks' work in it, and why to stop, or None.

    Rank 0 applies the rules, because clocks differ; an interruption counts on whichever rank it came.
    """
    reasons = _reasons(rules, history, simulated_costs(context, rules, history), upper_bounds(context, rules, history))
    rule = next((number for number, reason in enumerate(reasons) if reason), -1)
    table = _gather(context, measured, rule, interruption)
    solver = phases.from_numbers(table[:, FIRST_COUNT:FIRST_PIECE].sum(axis=0))
    total = sum(solver.values(), SolveStatistics())
    record = replace(
        history[-1],
        solves=total.solves,
        simplex_iterations=total.pivots,
        solver=solver,
        loads=_loads(table),
        traffic_bytes=context.traffic.by_purpose,
    )
    number = int(table[0, RULE])
    if number >= 0:
        return record, Stop(rules[number].kind, reasons[number] or "rank 0 asked to stop")
    return record, Interruption(int(table[:, INTERRUPTION].max())).stop


def stop_at_resume(rules: Sequence[StoppingRule], history: Sequence[IterationRecord]) -> Stop | None:
    """The stop of the first rule with a reason, where the history is the same on all ranks already."""
    reasons = _reasons(rules, history)
    return next((Stop(rule.kind, reason) for rule, reason in zip(rules, reasons, strict=True) if reason), None)


def _reasons(
    rules: Sequence[StoppingRule],
    history: Sequence[IterationRecord],
    simulated: Floats | None = None,
    bounds: Sequence[UpperBound | None] | None = None,
) -> list[str | None]:
    found = [None] * len(rules) if bounds is None else bounds
    return [rule.reason_to_stop(history, simulated, bound) for rule, bound in zip(rules, found, strict=True)]


def _gather(context: TrainingContext, measured: IterationResult, rule: int, interruption: Interruption) -> Floats:
    counter, clock = context.counter, measured.clock
    facts = [rule, int(interruption), counter.total.seconds, clock.seconds["exchange"]]
    own = np.array([[*facts, *counter.numbers, *clock.work]], np.float64)
    size = context.comm.size
    return context.gather(WorkSplit(size, size), own, "end of the iteration")


def _loads(table: Floats) -> tuple[RankLoad, ...]:
    """Load of each rank. Imbalance: how long it waits because others have more work between two exchanges."""
    work = table[:, FIRST_PIECE:]
    behind = (work.max(axis=0) - work).sum(axis=1)
    columns = (work.sum(axis=1), table[:, EXCHANGE_S], behind, table[:, SOLVER_S])
    return tuple(RankLoad(*map(float, row)) for row in zip(*columns, strict=True))
