"""The SDDP method: `train`, and the iteration that it repeats."""

from collections.abc import Sequence

from cobre.comm import CollectiveFailedError
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import CutSelection, StoppingRule
from cobre.sddp.records.iteration_record import IterationRecord
from cobre.sddp.records.stop import Stop
from cobre.sddp.training.backward import add_cuts, plan_backward
from cobre.sddp.training.clock import Clock
from cobre.sddp.training.context import IterationMark, TrainingContext
from cobre.sddp.training.exchange import share_bases
from cobre.sddp.training.forward import path_costs, run_forward
from cobre.sddp.training.hooks import Interruption, IterationDropped, TrainingHooks, why_dropped
from cobre.sddp.training.iteration_end import finish_iteration, iteration_record, stop_at_resume
from cobre.sddp.training.iteration_result import IterationResult
from cobre.sddp.training.lower_bound import first_stage_costs, lower_bound_of
from cobre.sddp.training.selection import apply_selection
from cobre.sddp.training.tree_iteration import iterate_tree
from cobre.sddp.training.trial_points import BackwardCosts, measure_trial_points


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

    An iteration that is dropped leaves no trace: the run ends as after the one before. Raises `IterationDropped` where
    there is none.
    """
    done = list(history)
    if done and (stop := stop_at_resume(rules, done)):
        return TrainingOutcome(tuple(done), stop)
    while True:
        before = context.mark()
        try:
            with hooks.iterating():
                record, stop = _iterate_and_judge(context, rules, selection, hooks, done)
        except (IterationDropped, CollectiveFailedError) as error:
            dropped = _drop_iteration(context, before, hooks, error)
            if not done or (stop := dropped.stop) is None:
                raise IterationDropped(dropped) from error
            hooks.on_checkpoint(context, done, True)
            return TrainingOutcome(tuple(done), stop, is_dropped=True)
        done.append(record)
        hooks.on_iteration(record)
        hooks.on_checkpoint(context, done, stop is not None)
        if stop is not None:
            return TrainingOutcome(tuple(done), stop)


def _iterate_and_judge(
    context: TrainingContext,
    rules: Sequence[StoppingRule],
    selection: CutSelection | None,
    hooks: TrainingHooks,
    done: Sequence[IterationRecord],
) -> tuple[IterationRecord, Stop | None]:
    tree = context.problem.tree
    measured = (
        iterate(context, len(done) + 1, selection)
        if tree is None
        else iterate_tree(context, tree, len(done) + 1, selection)
    )
    history = [*done, iteration_record(context, measured, done)]
    return finish_iteration(context, rules, history, measured, hooks.poll_interruption())


def _drop_iteration(
    context: TrainingContext, before: IterationMark, hooks: TrainingHooks, error: BaseException
) -> Interruption:
    """Go back to the iteration before, and tell the other ranks; raises an error that means something else."""
    reason = why_dropped(error, hooks.poll_interruption())
    if reason is Interruption.NONE:
        raise error
    if context.comm.size > 1:
        context.comm.abort(str(IterationDropped(reason)))
    context.go_back_to(before)
    return reason


def iterate(context: TrainingContext, iteration: int, selection: CutSelection | None) -> IterationResult:
    """One iteration: forward pass, backward pass that shares cuts at each stage, lower bound, cut selection.

    After the forward pass costs of paths are gathered, and states where cut selection or an export reads them.
    """
    problem, pool, split, team, own = context.problem, context.pool, context.split, context.team, context.own
    context.start_counting()
    clock = Clock()

    paths = run_forward(context, iteration)
    slots = pool.reserve_slots(iteration, split.total)
    plans = plan_backward(context, paths, slots, range(problem.num_stages - 1, 0, -1))
    clock.lap("forward")
    team.wait("paths")
    costs = context.gather(split, path_costs(problem, paths, own).reshape(-1, 1), "path costs")[:, 0]
    if (selection is not None and selection.reads_states) or context.keeps_states:  # nobody else reads all states
        context.traffic.add("trial states", context.visited.add(context.comm, split, paths.states[:, own]))
    clock.lap("exchange")

    drawn_costs = [add_cuts(context, iteration, plan, paths, clock) for plan in plans][::-1]
    context.bases = share_bases(context.comm, team, [context.basis_from(bases) for bases in paths.bases])
    context.traffic.add("bases", sum(bases.status.nbytes + bases.cuts.nbytes for bases in context.bases))
    clock.lap("exchange")

    first_costs = first_stage_costs(context, iteration)
    bound_value = lower_bound_of(context, first_costs)
    clock.lap("bound")
    backward = BackwardCosts(iteration, slots, first_costs[0], drawn_costs)
    trial_points, cost_sample = measure_trial_points(context, paths, backward)
    clock.lap("exchange")
    if selection is not None and selection.is_due(iteration):
        kept = context.selection_states
        exchanged = apply_selection(context.comm, pool, selection, context.visited, iteration, kept, context.solver.ask)
        context.traffic.add("active cuts", exchanged)
        clock.lap("bound")
    return IterationResult(iteration, bound_value, costs, clock, trial_points=trial_points, cost_sample=cost_sample)
