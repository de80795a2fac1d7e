"""The start of training: cold, from a checkpoint, or from the cuts of a policy.

Rank 0 alone reads checkpoints and policies. Files of the case are compared with those of the earlier run only where its
problem was another one.
"""

from pathlib import Path

from cobre.comm import Backend, Communicator
from cobre.io.policies.policy_file import find_policy_file, read_policy_bytes
from cobre.io.storage.atomic import on_failure
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, check_risk_measure, decode_policy
from cobre.runs.content import TrainedCase, case_of_run, changes_since
from cobre.runs.events import EventListener, new_event
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import count_sharing_memory, share
from cobre.study.checkpoints import (
    Checkpoint,
    check_same_run,
    list_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    share_bytes,
)
from cobre.study.preparation.study_cache import ReadyStudy
from cobre.study.requests import TrainingRequest

# Whether a policy belongs to the present problem: it stores the digest of the one that it was trained on.


def case_of_policy(policy: Policy | Path) -> TrainedCase | None:
    """Return the case of the run whose output directory holds a stored policy; None where it is unknown."""
    if isinstance(policy, Policy):
        return None
    folders = (policy, *policy.absolute().parents[:2])
    return next((found for folder in folders if (found := case_of_run(folder)) is not None), None)


def differs_in_problem(policy: Policy, study: PreparedStudy) -> bool:
    """Return whether the policy was trained on another problem; False for a policy without a digest."""
    return bool(policy.problem) and policy.problem != study.digest


def difference_in_words(
    policy: Policy, study: PreparedStudy, trained: TrainedCase | None, case: Path | None
) -> str | None:
    """Describe how the problem differs from the one that a policy was trained on."""
    if not differs_in_problem(policy, study):
        return None
    how = "" if trained is None else f" ({trained.changes_in_words(case)})"
    return f"the policy was trained on a different problem{how}"


CUTS_OF_ANOTHER_PROBLEM = "its cuts may be too high for this one, and so may the lower bound"

POLICY_OF_ANOTHER_PROBLEM = (
    "the simulated costs are valid for this case, but the lower bound stored with the policy is not"
)


def starting_point(
    comm: Backend, ready: ReadyStudy, request: TrainingRequest, emit: EventListener
) -> Checkpoint | Policy | None:
    """Return the checkpoint to continue from, the policy to begin with, or None; raise for one that does not fit."""
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
    found = share_checkpoint(comm, request.checkpoints, emit, is_needed=request.resume)
    if found is not None:
        with on_failure(found.large.close):
            check_same_run(found, ready.fingerprint, lambda: _share_changes(comm, run, ready.folder))
    return found


def _share_changes(comm: Communicator, run: Path, case: Path | None) -> str:
    """Name the files of the case that have changed since a run, as rank 0 sees them. Collective."""
    words = changes_since(case_of_run(run), case) if comm.rank == 0 else ""
    comm.check_failures()
    return bytes(share_bytes(comm, words.encode(), "changed files")).decode()


def share_checkpoint(comm: Communicator, folder: Path, emit: EventListener, *, is_needed: bool) -> Checkpoint | None:
    """Share the newest checkpoint of a folder that only rank 0 needs to see; None if there is none, unless needed."""
    file = None
    if comm.rank == 0 and (is_needed or list_checkpoints(folder)):
        file = newest_checkpoint(folder, lambda message: emit(new_event("warning", message=message)))
    comm.check_failures()
    return read_checkpoint(comm, file)


def share_policy(comm: Backend, policy: Policy | Path) -> Policy:
    """Return a given policy, or share that of a file that only rank 0 sees; each node holds its numbers once."""
    if isinstance(policy, Policy):
        return policy
    path = find_policy_file(policy) if comm.rank == 0 else policy
    content: bytes | memoryview = read_policy_bytes(path) if comm.rank == 0 else b""
    comm.check_failures()
    if comm.size == 1:
        return decode_policy(path, content)
    if count_sharing_memory(comm) < comm.size:  # leaders of other nodes do not see what rank 0 has read
        content = share_bytes(comm, bytes(content), "policy")
    shared = share(comm, lambda: decode_policy(path, content))
    shared.close()  # the memory stays as long as something looks at it
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
