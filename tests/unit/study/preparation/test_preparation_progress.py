"""Events before the first iteration: the current step, and its progress."""

import io
from pathlib import Path

import pytest

from cobre.cli.run_output import LineProgress
from cobre.comm.backends.local import LocalCommunicator
from cobre.core.preparation_steps import PreparationStep
from cobre.runs.view import RunView
from cobre.study.preparation import on_ranks
from cobre.study.preparation.on_ranks import PreparationProgress, prepare_on_ranks
from cobre.study.requests import CaseRequest
from cobre.tui.panels import event_line

CASE = Path(__file__).resolve().parents[4] / "examples" / "four_regions"


@pytest.fixture
def events(monkeypatch):
    """Return every report of a preparation as an event."""
    monkeypatch.setattr(on_ranks, "INTERVAL_S", 0.0)
    found = []
    with LocalCommunicator() as comm:
        ready = prepare_on_ranks(comm, CaseRequest(CASE, None, 1, use_cache=False), found.append)
    stages = ready.study.problem.num_stages
    return [event for event in found if event["event"] == "preparation"], stages


def test_steps_come_in_order_and_count_stages(events):
    found, stages = events
    assert list(dict.fromkeys(event["step"] for event in found)) == [step.value for step in PreparationStep]
    for step in (PreparationStep.STAGES, PreparationStep.PROGRAMS, PreparationStep.LOADING):
        done = [event["done"] for event in found if event["step"] == step.value]
        assert sorted(set(done)) == list(range(stages))
        assert done == sorted(done)
        assert {event["total"] for event in found if event["step"] == step.value} == {stages}
    elapsed = [event["elapsed_s"] for event in found]
    assert elapsed == sorted(elapsed)


def test_progress_appears_in_view_and_log(events):
    found, stages = events
    view, stream = RunView(), io.StringIO()
    lines = LineProgress(stream)
    for event in found:
        view.take(event)
        lines.emit(event)
    assert view.preparation_in_words == f"{PreparationStep.LOADING.value}, {stages - 1} of {stages}"
    assert event_line(found[-1]).endswith(view.preparation_in_words)
    shown = [line.strip().partition(" (")[0].partition(",")[0] for line in stream.getvalue().splitlines()]
    assert shown == [step.value for step in PreparationStep]  # a line for each step, not for each stage
    view.take({"event": "phase", "time": 1.0, "name": "training"})
    assert view.preparation_in_words == ""


def test_quick_steps_emit_one_event():
    found = []
    report = PreparationProgress(found.append)
    for done in range(1000):
        report(PreparationStep.PROGRAMS, done, 1000)
    assert len(found) <= 2  # none, unless this machine takes half a second for a thousand calls
