"""What is asked of the ranks of a study. Light to import: the process that starts them needs no more than this."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cobre.core.case import Case
    from cobre.policy.object import Policy
    from cobre.study.checkpoints import CheckpointPlan

Overrides = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """A case, given or in a directory, and how many threads each rank uses for it."""

    case: "Case | Path"
    overrides: Overrides | None
    threads: int


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """How to train.

    resume: go on from the newest checkpoint of `checkpoints`; resume_if_possible: or begin where there is none.
    warm_start: the policy file to begin with.
    answers: a pipe on which rank 0 hears, after each iteration that it told, whether to go on (see `answers`).
    """

    checkpoints: "CheckpointPlan | None" = None
    resume: bool = False
    resume_if_possible: bool = False
    warm_start: "Policy | Path | None" = None
    time_limit_s: float | None = None
    failure_folder: Path | None = None
    answers: Path | None = None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run and where to put it.

    checkpoint_every: iterations between checkpoints; 0: none; None: as the case says, or every ten.
    checkpoint_seconds: one is written at the latest after so long; None: every five minutes.
    overwrite: an earlier run in the output directory may be replaced.
    warm_start: a policy to begin with, besides what the case says. answers: as in TrainingRequest.
    """

    case: CaseRequest
    output: Path
    resume: bool = False
    resume_if_possible: bool = False
    warm_start: Path | None = None
    time_limit_s: float | None = None
    checkpoint_every: int | None = None
    checkpoint_seconds: float | None = None
    keep_checkpoints: int = 2
    overwrite: bool = False
    answers: Path | None = None


def with_iterations(overrides: Overrides | None, iterations: int | None) -> Overrides | None:
    """Overrides with another iteration limit as the only stopping rule."""
    if iterations is None:
        return overrides
    limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}]}
    return {**(overrides or {}), **limit}
