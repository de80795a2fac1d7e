"""The starting point of training: a cold start, a checkpoint, or the cuts of a policy.

Rank 0 alone reads checkpoints and policies. Files of the case are compared with those of the earlier run only where its
problem differs.
"""

from pathlib import Path

from cobre.comm import Backend, Communicator
from cobre.io.storage.atomic import on_failure
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, check_risk_measure, fill_pool
from cobre.runs.events import EventListener, new_event
from cobre.runs.trained_case import case_of_run, changes_since
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.records import IterationRecord
from cobre.sddp.training.context import TrainingContext
from cobre.study.checkpoints import (
    Checkpoint,
    check_same_run,
    list_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    restore,
    share_bytes,
    with_policy_costs,
)
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.requests import TrainingRequest
from cobre.study.stored_policy import share_policy, warn_of_other_problem

CUTS_OF_ANOTHER_PROBLEM = "its cuts may be too high for this one, and so may the lower bound"


def find_starting_point(
    comm: Backend, ready: ReadyStudy, request: TrainingRequest, emit: EventListener
) -> Checkpoint | Policy | None:
    """Return the checkpoint to continue from, the policy to begin with, or None for a cold start. Collective.

    Raises CheckpointError or PolicyIncompatibleError for one that does not fit the study.
    """
    if (checkpoint := _checkpoint(comm, ready, request, emit)) is not None:
        if request.warm_start is not None:
            message = "a resumed run already has its cuts: the warm-start policy is not read"
            emit(new_event("warning", message=message))
        return checkpoint
    if request.warm_start is None:
        return None
    policy = share_policy(comm, request.warm_start)
    check_fit(policy, ready.study)
    check_risk_measure(policy, ready.study)
    warn_of_other_problem(ready, policy, request.warm_start, emit, CUTS_OF_ANOTHER_PROBLEM)
    return policy


def _checkpoint(comm: Backend, ready: ReadyStudy, request: TrainingRequest, emit: EventListener) -> Checkpoint | None:
    if request.checkpoints is None or not request.may_resume:
        return None
    run = request.checkpoints.parent
    checkpoint = share_checkpoint(comm, request.checkpoints, emit, is_required=request.resume)
    if checkpoint is not None:
        with on_failure(checkpoint.large.close):
            check_same_run(checkpoint, ready.fingerprint, lambda: _share_changes(comm, run, ready.folder))
    return checkpoint


def _share_changes(comm: Communicator, run: Path, case: Path | None) -> str:
    """Name the files of the case that have changed since a run, as rank 0 sees them. Collective."""
    words = changes_since(case_of_run(run), case) if comm.rank == 0 else ""
    comm.check_failures()
    return bytes(share_bytes(comm, words.encode(), "changed files")).decode()


def share_checkpoint(comm: Communicator, folder: Path, emit: EventListener, *, is_required: bool) -> Checkpoint | None:
    """Return the newest checkpoint of a folder on all ranks; only rank 0 needs to see it. Collective.

    None if there is none; with `is_required`, CheckpointError.
    """
    file = None
    if comm.rank == 0 and (is_required or list_checkpoints(folder)):
        file = newest_checkpoint(folder, lambda message: emit(new_event("warning", message=message)))
    comm.check_failures()
    return read_checkpoint(comm, file)


def restore_start(
    context: TrainingContext, study: PreparedStudy, start: Checkpoint | Policy | None
) -> tuple[IterationRecord, ...]:
    """Put the cuts of the starting point into the empty pool; return the iterations of its checkpoint."""
    if isinstance(start, Checkpoint):
        restore(context.state, start, context.split.total)
        return with_policy_costs(start.history, is_estimate=not study.problem.is_risk_neutral)
    if start is not None:
        fill_pool(context.pool, start, study)
    return ()
