"""Training step by step: a context for a case, and some iterations on it."""

import numpy as np

from cobre.comm.backends.local import LocalCommunicator
from cobre.io.case import load_case
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.team import Team
from cobre.sddp.training.chains import BackwardChains
from cobre.sddp.training.context import TrainingContext, TrainingState
from cobre.sddp.training.loop import iterate
from cobre.sddp.training.visited_states import VisitedStates
from cobre.solver.batches import no_bases
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver


def context_of(folder, overrides=None, comm=None, threads=1, exports_states=False, has_components=True):
    """Return the training context of a case, before its first iteration.

    has_components: whether the pool stores slopes of cuts; without them, cuts are constants.
    """
    comm = comm or LocalCommunicator()
    study = prepare(load_case(folder, overrides))
    problem = study.problem
    split = WorkSplit(study.case.config.training.forward_passes, comm.size)
    components = None if has_components else [np.zeros(problem.dimension, bool)] * problem.num_stages
    pool = CutPool(comm, problem.num_stages, problem.dimension, components)
    bases = [no_bases(stage.program) for stage in problem.stages]
    return TrainingContext(
        comm=comm,
        problem=problem,
        solver=make_solver(study, threads),
        sampler=study.noise.training_sampler,
        split=split,
        team=Team.of(comm, comm, problem, split),
        backward_chains=BackwardChains(problem, split.total),
        state=TrainingState(pool, bases, VisitedStates(pool, has_all_entries=exports_states)),
    )


def iterated(context, iterations, selection=None):
    """Run iterations from the first; return their lower bounds."""
    return [iterate(context, number, selection).lower_bound for number in range(1, iterations + 1)]
