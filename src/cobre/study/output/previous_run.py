"""Results of an earlier run in an output directory: whether they may be removed, and how."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from cobre.core.file_names import (
    BOUND_FILE,
    CHECKPOINTS,
    FAILURES,
    HYDRO_MODELS,
    MANIFEST_FILE,
    POLICY,
    POLICY_FILE,
    REPORT_FILE,
    SIMULATION,
    STATES,
    STOCHASTIC,
    STUDY_FILE,
    SUMMARY_FILE,
    TRAINING,
)
from cobre.errors import OutputError
from cobre.io.output.growing_tables import UNFINISHED
from cobre.io.storage.atomic import as_write_error
from cobre.io.storage.confined import UntrustedFileError, remove_file, remove_tree
from cobre.records import dataclass
from cobre.runs.content import logged_run, stored_policy_path, stored_study
from cobre.runs.files import has_results
from cobre.runs.run_state import RunState
from cobre.runs.view import RunView
from cobre.study.requests import RunRequest
from cobre.study.training.checkpoints import list_checkpoints
from cobre.study.unchecked_config import UncheckedConfig
from cobre.text import counted

_WRITTEN_BY_EVERY_RUN = (SUMMARY_FILE, REPORT_FILE, BOUND_FILE, SIMULATION)
_WRITTEN_BY_NEW_TRAININGS = (STUDY_FILE, TRAINING, STATES, STOCHASTIC, HYDRO_MODELS, FAILURES, CHECKPOINTS)


class OutputHoldsRunError(OutputError):
    """An output directory with results of an earlier run that may not be replaced."""


class OutputIsCaseError(OutputError):
    """The case directory, given as the output directory."""


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """An earlier run, by its log. stop_reason: why training ended; empty if it did not."""

    case: str
    iterations: int
    last_time: float
    state: RunState
    stop_reason: str = ""

    def __str__(self) -> str:
        is_known = 0 < self.last_time < 1e11
        when = f", {datetime.fromtimestamp(self.last_time, UTC):%Y-%m-%d %H:%M} UTC" if is_known else ""
        why = f": {self.stop_reason}" if self.stop_reason else ""
        trained = f"{counted(self.iterations, 'iteration')}, " if self.iterations else ""
        return f"a run of {self.case} ({trained}{self.state.words}{why}{when})"


def find_previous_run(output: Path) -> PreviousRun | None:
    """Return the earlier run in a directory; None without results. The caller holds the lock.

    A run that was refused, or killed early, leaves a log and no results.
    """
    if not has_results(output) and not list_checkpoints(output / CHECKPOINTS):
        return None
    view = _logged_run(output)
    state = view.end_state(output) or RunState.KILLED
    has_ended = state in (RunState.FINISHED, RunState.STOPPED)
    return PreviousRun(
        case=str(view.started.get("case", "an unknown case")),
        iterations=len(view.iterations),
        last_time=view.last_time,
        state=state,
        stop_reason=str((view.trained or {}).get("stop_reason", "")) if has_ended else "",
    )


def _remove_published_tables(simulation: Path) -> None:
    """Remove published tables, but keep the segments of an interrupted simulation, which is resumed."""
    if simulation.is_symlink() or not simulation.is_dir():
        remove_tree(simulation)
        return
    for path in simulation.iterdir():
        if path.name != UNFINISHED:
            remove_tree(path)


def require_replaceable(request: RunRequest, config: UncheckedConfig) -> None:
    """Raise OutputHoldsRunError for an earlier run that this one would replace without permission."""
    if request.training.warm_start is not None and not config.is_trained:
        require_no_training(request.output)
    if request.overwrite or request.training.resume or _continues_own_policy(request, config):
        return
    if request.training.resume_if_possible and list_checkpoints(request.output / CHECKPOINTS):
        return
    previous = find_previous_run(request.output)
    if previous is not None:
        raise OutputHoldsRunError(f"{request.output} already holds {previous}: {_suggestion(config)}")


def require_apart_from_case(request: RunRequest) -> None:
    """Raise OutputIsCaseError if the output directory is the case directory."""
    case = request.case.case
    if isinstance(case, Path) and request.output.exists() and request.output.samefile(case):
        suggestion = f"choose another --output, such as {case / 'output'}"
        raise OutputIsCaseError(
            f"{request.output} is the case directory; results would be mixed with its files: {suggestion}"
        )


def require_no_training(output: Path) -> None:
    """Raise OutputHoldsRunError if a simulation of a stored policy would be written where a policy was trained.

    Overwriting would not help: it would leave the trained policy with log and summary of another run.
    """
    if (output / TRAINING / MANIFEST_FILE).exists():
        raise OutputHoldsRunError(
            f"{output} holds a training run, whose log and summary would be lost: choose another --output"
        )


def _suggestion(config: UncheckedConfig) -> str:
    """Suggest what to do about an earlier run; only training can be continued."""
    replace = "replace it (--overwrite, in Python overwrite=True), or choose another --output"
    return f"continue it (--resume or --auto-resume), {replace}" if config.is_trained else replace


def clear_previous_run(output: Path, *, is_resumed: bool, has_training: bool, keeps_policy: bool) -> None:
    """Remove results of an earlier run, so that they cannot be mistaken for new ones; other files are kept."""
    is_new_training = has_training and not is_resumed
    policies = _policies(output) if is_new_training and not keeps_policy else ()  # reads study.json, removed below
    names: tuple[str, ...] = _WRITTEN_BY_EVERY_RUN
    if is_new_training:
        names += _WRITTEN_BY_NEW_TRAININGS
    for name in names:
        with as_write_error(output / name):
            if name == SIMULATION and is_resumed:
                _remove_published_tables(output / name)
            else:
                remove_tree(output / name)
    for path in policies:
        with as_write_error(path):
            remove_file(path)


def _policies(output: Path) -> set[Path]:
    """Return the default path of the policy, and the path by the settings of the previous run."""
    paths = {output / POLICY / POLICY_FILE}
    with suppress(OSError, ValueError, UntrustedFileError):  # a damaged study.json, or a path outside
        paths.add(stored_policy_path(output, stored_study(output)))
    return paths


def _continues_own_policy(request: RunRequest, config: UncheckedConfig) -> bool:
    """Return whether the case continues from the policy in its own output directory."""
    mode, needs_policy = config.policy_mode, request.training.warm_start is None
    return bool(mode == "resume") or (needs_policy and (mode == "warm_start" or not config.is_trained))


def _logged_run(output: Path) -> RunView:
    try:
        return logged_run(output)
    except (OSError, UntrustedFileError):
        return RunView()


def is_resumed(request: RunRequest, config: UncheckedConfig) -> bool:
    """Return whether the run continues from a checkpoint in its output directory, by its request or its case."""
    may_resume = request.training.may_resume or config.policy_mode == "resume"
    return may_resume and bool(list_checkpoints(request.output / CHECKPOINTS))
