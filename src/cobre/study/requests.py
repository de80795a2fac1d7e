"""Requests to the ranks of a study. Light to import, for the process that starts them."""

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
    """A case, given or in a directory.

    threads: of each rank, as its placement says.
    config: config.json of a case directory, where it has been read already (`unchecked_config.with_config_document`).
    use_cache: whether what an earlier run prepared may be used, and kept for later ones.
    plugins: objects of the caller's; None: those that config.json names.
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

    checkpoints: the folder for them; None: none are kept.
    checkpoint_every: iterations between two; 0: only after the last one; None: as the case says, or
    DEFAULT_CHECKPOINT_INTERVAL.
    checkpoint_seconds: another one is written this long after the last; None: DEFAULT_CHECKPOINT_SECONDS.
    keep_checkpoints: how many of the newest stay.
    resume: continue from the newest checkpoint; resume_if_possible: or begin where there is none.
    warm_start: the policy to begin with, or its file.
    failure_folder: where an LP that cannot be solved is written.
    reply_pipe: from which rank 0 reads after each iteration whether to continue (see `ReplyPipe`).
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
        """Whether a checkpoint, where there is one, is continued from."""
        return self.resume or self.resume_if_possible


DEFAULT_TRAINING = TrainingRequest()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run with an output directory: what `cobre run` asks of its ranks.

    The folders of `training` follow from `output`. overwrite: an earlier run in it may be replaced. split_reason: why
    this number of workers and threads was chosen, where the user did not say.
    """

    case: CaseRequest
    output: Path
    training: TrainingRequest = DEFAULT_TRAINING
    overwrite: bool = False
    split_reason: str = ""


def with_iterations(overrides: Overrides | None, iterations: int | None) -> Overrides | None:
    """Return overrides with another iteration limit as the only stopping rule."""
    if iterations is None:
        return overrides
    limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}]}
    return {**(overrides or {}), **limit}
