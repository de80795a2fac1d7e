"""What the present policy costs in fresh scenarios, for stopping rules that want to know."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.sddp.events import IterationRecord
from cobre.sddp.phases import Phase
from cobre.sddp.plugins.interfaces import Sampler, StoppingRule
from cobre.sddp.problem import realise
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.upper_bounds.find import find_upper_bound
from cobre.sddp.upper_bounds.result import UpperBound
from cobre.sddp.work_split import WorkSplit
from cobre.solver.batches import Chains, Keep, Realisations

# Forward passes count iterations from 1 and simulations use 0: with this bit no noise is met twice.
EVALUATION = 1 << 31


def simulated_costs(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> Floats | None:
    """Costs of as many paths as some rule wants to see now; None when none does."""
    wanted = max((rule.needs_simulation(history) for rule in rules), default=0)
    return evaluate_policy(context, history[-1].iteration, wanted) if wanted else None


def upper_bounds(
    context: TrainingContext, rules: Sequence[StoppingRule], history: Sequence[IterationRecord]
) -> list[UpperBound | None]:
    """For each rule the upper bound that it wants to see now; the last one stays in the context."""
    plans = [rule.needs_bound(history) for rule in rules]
    iteration = history[-1].iteration
    found = [None if plan is None else find_upper_bound(context, plan, iteration) for plan in plans]
    context.upper_bound = next((bound for bound in found if bound is not None), None)
    return found


def evaluate_policy(context: TrainingContext, iteration: int, replications: int) -> Floats:
    """Costs in $ today of paths that training never met, in order and the same on all ranks.

    Paths follow the scheme of the forward passes, all cuts count, and every evaluation draws anew. The costs have the
    same bits for any number of ranks and threads.
    """
    split = WorkSplit(replications, context.comm.size)
    sampler = context.sampler.for_scenarios(replications)
    costs = _walk(context, sampler, iteration, split.block(context.comm.rank))
    return context.gather(split, costs.reshape(-1, 1), "costs of simulated paths")[:, 0]


def _walk(context: TrainingContext, sampler: Sampler, iteration: int, paths: range) -> Floats:
    problem, keep = context.problem, Keep()
    state, costs, weight = np.tile(problem.initial_state, (len(paths), 1)), np.zeros(len(paths)), 1.0
    for t, lp in enumerate(problem.stages):
        noise, items = _realisations(context, sampler, iteration | EVALUATION, paths, t)
        basis_index = np.full(len(paths), context.basis_index(t), np.int32)
        chains = Chains(state, np.arange(len(paths) + 1, dtype=np.int32), items, context.bases[t], basis_index)
        batch = context.solve(Phase.SIMULATION, t, iteration, chains, noise, keep, everything=True)
        # What another study says of the end belongs to the cost of the path.
        future = 0.0 if t == problem.num_stages - 1 else lp.plan.data.discount
        costs += weight * ((batch.objective - future * batch.future_cost) * problem.cost_scale)
        weight *= lp.plan.data.discount
        state = lp.program.next_states(state, batch.decided, batch.inflow)
    return costs


def _realisations(
    context: TrainingContext, sampler: Sampler, key: int, paths: range, stage: int
) -> tuple[Realisations, Ints]:
    """What happens, and which of it each path meets."""
    if sampler.is_in_sample:
        met = sampler.opening_indices(key, paths, stage)
        return context.problem.openings[stage].realisations, met.astype(np.int32)
    noise = sampler.sample(key, paths, stage)
    return realise(context.problem.noise, stage, noise), np.arange(len(noise), dtype=np.int32)
