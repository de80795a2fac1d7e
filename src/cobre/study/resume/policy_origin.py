"""Whether a policy belongs to the problem at hand: it keeps the digest of the one that it was trained on."""

from pathlib import Path

from cobre.policy.object import Policy
from cobre.runs.trained_case import TrainedCase, case_of_run
from cobre.sddp.problem.prepared import PreparedStudy


def case_of_policy(policy: Policy | Path) -> TrainedCase | None:
    """The case of the run whose output directory holds a stored policy; None where it is unknown."""
    if isinstance(policy, Policy):
        return None
    folders = (policy, *policy.absolute().parents[:2])
    return next((found for folder in folders if (found := case_of_run(folder)) is not None), None)


def is_of_other_problem(policy: Policy, study: PreparedStudy) -> bool:
    """Whether the policy was trained on another problem; False for a policy without a digest."""
    return bool(policy.problem) and policy.problem != study.digest


def difference_in_words(
    policy: Policy, study: PreparedStudy, trained: TrainedCase | None, case: Path | None
) -> str | None:
    """How the problem at hand differs from the one that a policy was trained on; None where it does not."""
    if not is_of_other_problem(policy, study):
        return None
    how = "" if trained is None else f" ({trained.changes_in_words(case)})"
    return f"the policy was trained on a different problem{how}"
