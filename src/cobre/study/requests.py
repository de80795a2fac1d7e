"""Requests to the ranks of a study. Cheap to import in the launching process."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.records import dataclass

if TYPE_CHECKING:
    from cobre.core.case import Case
    from cobre.io.input_files.config_overrides import ConfigDocument
    from cobre.policy.object import Policy
    from cobre.sddp.plugins.user_plugins import Plugins

Overrides = Mapping[str, Any]
DEFAULT_CHECKPOINT_INTERVAL = 10
"""Iterations between two checkpoints."""

DEFAULT_CHECKPOINT_SECONDS = 300.0
"""Longest time between two checkpoints."""


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """A case, in memory or in a directory.

    threads: number of threads of the LP solver of each rank.
    config: config.json of a case directory, if already read (`unchecked_config.with_config_document`).
    use_cache: whether the prepared study may come from the cache, and go there.
    plugins: custom objects; None: those that config.json names.
    """

    case: "Case | Path"
    overrides: Overrides | None
    threads: int = 1
    config: "ConfigDocument | None" = None
    use_cache: bool = True
    plugins: "Plugins | None" = None


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """Options of training: starting point, checkpoints and limits.

    checkpoints: their folder; None: none are written.
    checkpoint_every: iterations between two checkpoints; 0: only after the last iteration; None: that of the case, or
    DEFAULT_CHECKPOINT_INTERVAL.
    checkpoint_seconds: longest time between two checkpoints; None: DEFAULT_CHECKPOINT_SECONDS.
    keep_checkpoints: number of the newest checkpoints that are kept.
    resume: continue from the newest checkpoint; resume_if_possible: the same, or a cold start if there is none.
    warm_start: a policy, or its file, whose cuts training begins with.
    failure_folder: for LPs that cannot be solved.
    reply_pipe: named pipe from which rank 0 reads after each iteration whether to continue (see `ReplyPipe`).
    """

    checkpoints: Path | None = None
    checkpoint_every: int | None = None
    checkpoint_seconds: float | None = None
    keep_checkpoints: int = 2
    resume: bool = False
    resume_if_possible: bool = False
    warm_start: "Policy | Path | None" = None
    time_limit_s: float | None = None
    failure_folder: Path | None = None
    reply_pipe: Path | None = None

    @property
    def may_resume(self) -> bool:
        """Whether training continues from a checkpoint if there is one."""
        return self.resume or self.resume_if_possible


DEFAULT_TRAINING = TrainingRequest()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run with an output directory, as `cobre run` sends it to its ranks.

    The folders of `training` follow from `output`. overwrite: whether to replace an earlier run there. split_reason:
    the reason for the number of workers and threads, where Cobre has chosen it.
    """

    case: CaseRequest
    output: Path
    training: TrainingRequest = DEFAULT_TRAINING
    overwrite: bool = False
    split_reason: str = ""


def with_iterations(overrides: Overrides | None, iterations: int | None) -> Overrides | None:
    """Add an iteration limit as the only stopping rule; return the overrides unchanged for None."""
    if iterations is None:
        return overrides
    limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}]}
    return {**(overrides or {}), **limit}
