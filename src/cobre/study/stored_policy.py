"""Stored policies on all ranks: read by rank 0, shared, and compared with the problem at hand.

A policy stores the digest of the problem that it was trained on.
"""

from pathlib import Path

from cobre.comm import Backend
from cobre.io.policies.policy_file import find_policy_file, read_policy_bytes
from cobre.policy.object import Policy
from cobre.policy.store import decode_policy
from cobre.runs.events import EventListener, new_event
from cobre.runs.trained_case import TrainedCase, case_of_run
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import count_sharing_memory, share
from cobre.study.checkpoints import share_bytes
from cobre.study.preparation.on_ranks import ReadyStudy


def case_of_policy(policy: Policy | Path) -> TrainedCase | None:
    """Return the case of the run whose output directory holds a stored policy; None if it is unknown."""
    if isinstance(policy, Policy):
        return None
    folders = (policy, *policy.absolute().parents[:2])
    return next((found for folder in folders if (found := case_of_run(folder)) is not None), None)


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


POLICY_OF_ANOTHER_PROBLEM = (
    "the simulated costs are valid for this case, but the lower bound stored with the policy is not"
)


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
    shared = share(comm, lambda: decode_policy(path, content))
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
