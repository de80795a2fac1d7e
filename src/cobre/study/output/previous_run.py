"""What an earlier run left in an output directory: whether it may go, and how it goes."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from cobre.errors import OutputError
from cobre.io.output.growing_tables import UNFINISHED
from cobre.io.storage.atomic import as_write_error
from cobre.io.storage.confined import remove_file, remove_tree
from cobre.io.storage.untrusted_file import UntrustedFileError
from cobre.records import dataclass
from cobre.runs.files import (
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
    has_results,
)
from cobre.runs.state import RunState
from cobre.runs.stored import logged_run, stored_policy_path, stored_study
from cobre.runs.view import RunView
from cobre.study.config_outline import ConfigOutline
from cobre.study.requests import RunRequest
from cobre.study.resume.checkpoints import list_checkpoints
from cobre.wording import counted

# What every run writes anew, and what only one does that begins from nothing.
_AFTER_TRAINING = (SUMMARY_FILE, REPORT_FILE, BOUND_FILE, SIMULATION)
_FROM_THE_START = (STUDY_FILE, TRAINING, STATES, STOCHASTIC, HYDRO_MODELS, FAILURES, CHECKPOINTS)


class OutputHoldsRunError(OutputError):
    """An output directory has the results of an earlier run, and nobody has said that they may go."""


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """An earlier run, as far as its log tells; stop_reason: why training ended, empty where it has not."""

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
    """The run whose results are there, while the caller holds the directory, so that no run is in progress.

    None where there are no results: a run that was refused, or killed early, leaves a log and nothing to lose.
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


def _keep_unfinished(simulation: Path) -> None:
    """Scenarios that are done need not be simulated again; tables that claim to be whole go."""
    if simulation.is_symlink() or not simulation.is_dir():
        remove_tree(simulation)
        return
    for path in simulation.iterdir():
        if path.name != UNFINISHED:
            remove_tree(path)


def refuse_to_replace(request: RunRequest) -> None:
    """Raise when the directory holds an earlier run that this one would replace without permission."""
    if request.training.warm_start is not None and not ConfigOutline.of(request.case).is_trained:
        refuse_to_simulate_over_training(request.output)
    if request.overwrite or request.training.resume or _builds_on_what_is_there(request):
        return
    if request.training.resume_if_possible and list_checkpoints(request.output / CHECKPOINTS):
        return
    previous = find_previous_run(request.output)
    if previous is not None:
        raise OutputHoldsRunError(f"{request.output} already holds {previous}: {_suggestion(request)}")


def refuse_to_simulate_over_training(output: Path) -> None:
    """Raise OutputHoldsRunError when a simulation of a given policy would go where a policy was trained.

    Overwriting does not help: it would leave a trained policy with the log and the summary of something else.
    """
    if (output / TRAINING / MANIFEST_FILE).exists():
        raise OutputHoldsRunError(
            f"{output} holds a training run, whose log and summary would be lost: choose another --output"
        )


def _suggestion(request: RunRequest) -> str:
    """What can be done about an earlier run; a simulation alone cannot be continued."""
    replace = "replace it (--overwrite, in Python overwrite=True), or choose another --output"
    is_trained = ConfigOutline.of(request.case).is_trained
    return f"continue it (--resume or --auto-resume), {replace}" if is_trained else replace


def clear_previous_run(output: Path, *, is_resumed: bool, has_training: bool, keeps_policy: bool) -> None:
    """Remove the results of an earlier run, so that none can be taken for one of this run; other files stay."""
    begins = has_training and not is_resumed
    policies = _policies(output) if begins and not keeps_policy else ()  # asked while study.json is there
    names: tuple[str, ...] = _AFTER_TRAINING
    if begins:
        names += _FROM_THE_START
    for name in names:
        with as_write_error(output / name):
            if name == SIMULATION and is_resumed:
                _keep_unfinished(output / name)
            else:
                remove_tree(output / name)
    for path in policies:
        with as_write_error(path):
            remove_file(path)


def _policies(output: Path) -> set[Path]:
    """The policy where runs keep it by default, and where the previous run's own settings put it."""
    paths = {output / POLICY / POLICY_FILE}
    with suppress(OSError, ValueError, UntrustedFileError):  # a damaged study.json, or a path that leads elsewhere
        paths.add(stored_policy_path(output, stored_study(output)))
    return paths


def _builds_on_what_is_there(request: RunRequest) -> bool:
    """A case may say that it goes on from the policy in its own output directory."""
    config = ConfigOutline.of(request.case)
    mode, needs_policy = config.policy_mode, request.training.warm_start is None
    return bool(mode == "resume") or (needs_policy and (mode == "warm_start" or not config.is_trained))


def _logged_run(output: Path) -> RunView:
    try:
        return logged_run(output)
    except (OSError, UntrustedFileError):
        return RunView()
