"""The forward pass: every path through the stages under the present policy, all paths of a rank side by side."""

from dataclasses import dataclass

import numpy as np

from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Bases, Chains, Keep
from cobre.solver.program import Floats


@dataclass(frozen=True, slots=True)
class Paths:
    """This rank's paths. states[t] enters stage t; costs are $ today."""

    states: list[Floats]  # stages x (paths x dimension)
    bases: list[Bases]  # stages; one basis for each path
    costs: Floats  # paths


def run_forward(context: TrainingContext, iteration: int) -> Paths:
    """Walk all of this rank's paths from the first stage to the last."""
    problem, paths = context.problem, context.own_paths
    state = np.tile(problem.initial_state, (len(paths), 1))
    weight = 1.0
    result = Paths([], [], np.zeros(len(paths)))
    for t, lp in enumerate(problem.stages):
        result.states.append(state)
        noise, items = context.realisations(iteration, t)
        basis_index = np.full(len(paths), context.basis_index(t), np.int32)
        chains = Chains(state, np.arange(len(paths) + 1, dtype=np.int32), items, context.bases[t], basis_index)
        batch = context.solve(t, iteration, chains, noise, Keep(basis=True))
        result.bases.append(Bases(batch.basis_status, batch.basis_cuts))
        stage_cost = batch.objective - lp.plan.data.discount * batch.future_cost
        result.costs[:] += weight * (stage_cost * problem.cost_scale)
        weight *= lp.plan.data.discount
        state = next_states(state, batch.storage, batch.inflow)
    return result


def next_states(state: Floats, storage: Floats, inflow: Floats) -> Floats:
    """What leaves a stage: storages, this stage's inflow as lag 1, and the other lags one place further."""
    hydros = storage.shape[1]
    lags = state.shape[1] // hydros - 1 if hydros else 0
    if lags == 0:
        return np.ascontiguousarray(storage)
    return np.ascontiguousarray(np.concatenate([storage, inflow, state[:, hydros : hydros * lags]], axis=1))
