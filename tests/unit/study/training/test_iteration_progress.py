"""Events within an iteration: they count finished solves out of all solves of the iteration."""

from pathlib import Path

import pytest

from cobre.comm.backends.local import LocalCommunicator
from cobre.sddp.training.loop import Interruption, IterationDropped
from cobre.study.preparation.on_ranks import ReadyStudy, as_case
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import TrainingRequest, with_iterations
from cobre.study.training import iteration_progress
from cobre.study.training.iteration_progress import IterationSize
from cobre.study.training.train import train_study

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


def _events(monkeypatch, case, threads=1):
    """Return events; every poll of the solver becomes one."""
    monkeypatch.setattr(iteration_progress, "INTERVAL_S", 0.0)
    monkeypatch.setattr(iteration_progress, "INTERVAL_SHARE", 0.0)
    events = []
    with LocalCommunicator() as comm:
        train_study(comm, _ready(case, 2, threads), TrainingRequest(), events.append)
    return events


def _ready(case, iterations, threads):
    study = prepare(as_case(EXAMPLES / case, with_iterations(None, iterations))[0])
    return ReadyStudy(study, make_solver(study, threads))


@pytest.mark.parametrize("threads", [1, 2])
def test_events_count_up_to_the_lps_of_the_iteration(monkeypatch, threads):
    events = _events(monkeypatch, "large", threads)
    for number in (1, 2):
        progress = [event for event in events if event["event"] == "progress" and event["iteration"] == number]
        [done] = [event for event in events if event["event"] == "iteration" and event["iteration"] == number]
        counts = [event["solves"] for event in progress]
        assert len(counts) > 3
        assert counts == sorted(counts)
        known = [event for event in progress if "total_solves" in event]
        assert {event["total_solves"] for event in known} == {done["solves"]}
        assert all(0 < event["solves"] <= event["total_solves"] for event in known)
        passes = list(dict.fromkeys(event["pass"] for event in known))
        assert passes == [name for name in ("forward", "backward", "bound") if name in passes]
        stages = [event["stage"] for event in known if "stage" in event]
        assert stages == sorted(stages, reverse=True)


def test_position_within_iteration():
    size = IterationSize(forward=6, backward=((12, 10), (11, 10)), bound=5)
    assert size.total == 31
    assert size.position(0) == {"pass": "forward"}
    assert size.position(6) == {"pass": "backward", "stage": 12}
    assert size.position(16) == {"pass": "backward", "stage": 11}
    assert size.position(26) == size.position(31) == {"pass": "bound"}


def test_listener_exception_ends_iteration(monkeypatch):
    monkeypatch.setattr(iteration_progress, "INTERVAL_S", 0.0)
    events = []

    def emit(event):
        events.append(event)
        if event["event"] == "progress":
            raise IterationDropped(Interruption.REQUESTED)

    with LocalCommunicator() as comm, pytest.raises(KeyboardInterrupt):
        train_study(comm, _ready("large", 1, 1), TrainingRequest(), emit)
    assert [event["event"] for event in events if event["event"] == "iteration"] == []
