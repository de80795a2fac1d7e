"""Training by hand: a context for a case, and some iterations on it."""

from cobre.comm.backends.local import LocalCommunicator
from cobre.io.case import load_case
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.team import Team
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.loop import iterate
from cobre.solver.batches import no_bases
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver


def context_of(folder, overrides=None, comm=None, threads=1, keeps_states=False):
    """Return the training context of a case, before its first iteration."""
    comm = comm or LocalCommunicator()
    study = prepare(load_case(folder, overrides))
    problem = study.problem
    split = WorkSplit(study.case.config.training.forward_passes, comm.size)
    return TrainingContext(
        comm=comm,
        problem=problem,
        solver=make_solver(study, threads),
        sampler=study.noise.training_sampler,
        pool=CutPool(comm, problem.num_stages, problem.dimension),
        split=split,
        team=Team.of(comm, comm, problem, split),
        bases=[no_bases(stage.program) for stage in problem.stages],
        keeps_states=keeps_states,
    )


def iterated(context, iterations, selection=None):
    """Run iterations from the first; return their lower bounds."""
    return [iterate(context, number, selection).lower_bound for number in range(1, iterations + 1)]
