"""The policy or checkpoint that a run starts from: read by rank 0, compared with the problem, and shared.

A policy stores the digest of the problem that it was trained on. Files of the case are compared with those of the
earlier run only if the problems differ.
"""

from pathlib import Path

from cobre.comm import Backend, Communicator
from cobre.io.policies.policy_file import find_policy_file, read_policy_bytes
from cobre.io.storage.atomic import on_failure
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, check_risk_measure, decode_policy, fill_pool
from cobre.runs.events import EventListener, new_event
from cobre.runs.trained_case import TrainedCase, case_of_run, changes_since
from cobre.sddp.iteration_records import IterationRecord
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import build_once_per_node, count_sharing_memory
from cobre.sddp.training.context import TrainingContext
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.requests import TrainingRequest
from cobre.study.training.checkpoints import (
    Checkpoint,
    check_same_run,
    list_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    restore,
    share_bytes,
    with_policy_costs,
)

CUTS_OF_ANOTHER_PROBLEM = "its cuts may be too high for this one, and so may the lower bound"
POLICY_OF_ANOTHER_PROBLEM = (
    "the simulated costs are valid for this case, but the lower bound stored with the policy is not"
)


def case_of_policy(policy: Policy | Path) -> TrainedCase | None:
    """Return the case of the run whose output directory holds a stored policy; None if it is unknown."""
    if isinstance(policy, Policy):
        return None
    folders = (policy, *policy.absolute().parents[:2])
    return next((trained for folder in folders if (trained := case_of_run(folder)) is not None), None)


def differs_in_problem(policy: Policy, study: PreparedStudy) -> bool:
    """Return whether the policy was trained on another problem; False for a policy that stores no digest."""
    return bool(policy.problem) and policy.problem != study.digest


def difference_in_words(
    policy: Policy, study: PreparedStudy, trained: TrainedCase | None, case: Path | None
) -> str | None:
    """Describe how the problem differs from the one that a policy was trained on."""
    if not differs_in_problem(policy, study):
        return None
    how = "" if trained is None else f" ({trained.changes_in_words(case)})"
    return f"the policy was trained on a different problem{how}"


def share_policy(comm: Backend, policy: Policy | Path) -> Policy:
    """Return a policy on all ranks. Only rank 0 needs to see its file; each node holds its numbers once."""
    if isinstance(policy, Policy):
        return policy
    path = find_policy_file(policy) if comm.rank == 0 else policy
    content: bytes | memoryview = read_policy_bytes(path) if comm.rank == 0 else b""
    comm.check_failures()
    if comm.size == 1:
        return decode_policy(path, content)
    if count_sharing_memory(comm) < comm.size:  # leaders of other nodes do not see what rank 0 has read
        content = share_bytes(comm, bytes(content), "policy")
    shared = build_once_per_node(comm, lambda: decode_policy(path, content))
    shared.close()  # the memory is freed with the last view
    return shared.value


def warn_of_other_problem(
    ready: ReadyStudy, policy: Policy, source: Policy | Path, emit: EventListener, consequence: str
) -> tuple[str, ...]:
    """Emit and return the warning that a policy was trained on another problem."""
    if not differs_in_problem(policy, ready.study):
        return ()
    how = difference_in_words(policy, ready.study, case_of_policy(source), ready.folder)
    message = f"{how}: {consequence}"
    emit(new_event("warning", message=message))
    return (message,)


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
