"""The view of a run, built from its events."""

import fcntl
import json
import socket
import time

import pytest
from event_streams import START, iteration, phase, started, training

from cobre.runs.events import EventFollower, NothingToFollowError
from cobre.runs.run_state import RunState
from cobre.runs.view import RunView
from cobre.tui.panels import figures


def viewed(*events):
    view = RunView()
    view.take_all(events)
    return view


def test_view_of_training_run():
    view = viewed(*training(10))
    assert view.phase == "training"
    assert view.iteration_limit == 20
    assert view.last["iteration"] == 10
    assert view.iterations_per_s == pytest.approx(1.0)
    assert view.solves_per_s == pytest.approx(100.0)
    assert view.seconds_left == pytest.approx(10.0)
    assert view.seconds(START + 30.0) == 30.0
    assert view.phase_seconds == pytest.approx({"forward": 2.0, "backward": 6.0, "bound": 1.0, "exchange": 1.0})
    assert [(total.busy_s, total.waiting_s) for total in view.loads] == [pytest.approx((9.0, 1.0))] * 2


def test_iteration_without_loads_keeps_those_of_the_ranks():
    view = viewed(*training(2), iteration(3, load=[]), iteration(4))
    assert [(total.busy_s, total.times_slowest) for total in view.loads] == [
        (pytest.approx(2.7), 3),
        (pytest.approx(2.7), 0),
    ]


def test_resumed_run_keeps_the_iterations_before_its_checkpoint():
    again = [started(is_resumed=True), phase("training"), iteration(9), iteration(10)]
    view = viewed(*training(12), *again)
    assert [event["iteration"] for event in view.iterations] == list(range(1, 11))
    assert [(total.busy_s, total.waiting_s) for total in view.loads] == [pytest.approx((1.8, 0.2))] * 2


def test_view_of_simulated_stored_policy():
    simulated = {
        "event": "simulation_finished",
        "time": START + 3.0,
        "scenarios": 5,
        "mean_cost": 1e6,
        "half_width": 1.0,
    }
    for view in (
        viewed(started(), phase("building"), phase("simulation")),
        viewed(started(), phase("building"), phase("simulation"), simulated),
        viewed(started(), phase("simulation"), simulated, {"event": "run_finished", "time": START + 4.0}),
    ):
        assert view.is_simulation_only
        assert view.no_bounds_reason == "stored policy, no training"


@pytest.mark.parametrize(
    ("kind", "status"),
    [("interrupted", RunState.STOPPED), ("run_time_limit", RunState.STOPPED), ("iteration_limit", RunState.FINISHED)]
    + [(odd, RunState.FINISHED) for odd in (None, 3, ["interrupted"], "unheard of")],
)
def test_stopped_and_finished_runs_have_different_states(tmp_path, kind, status):
    trained = {"event": "training_finished", "time": START + 3.0, "stop_kind": kind}
    view = viewed(*training(3), trained, {"event": "run_finished", "time": START + 4.0})
    assert view.state(tmp_path) is status


def test_view_before_first_iteration_is_empty():
    assert viewed(started(), phase("training")).no_bounds_reason == "no iteration yet"
    failed = {"event": "run_failed", "time": START, "error": "x", "kind": "y"}
    assert viewed(started(), phase("training"), failed).no_bounds_reason == "no iteration finished"
    assert not viewed(*training(3), phase("simulation")).is_simulation_only


def test_new_run_resets_view():
    assert viewed(*training(12), started()).iterations == []


def test_missing_bounds_are_none():
    assert viewed(started(), iteration(1, lower_bound=None)).series("lower_bound") == [None]


def test_unknown_events_are_ignored():
    assert viewed(*training(2), {"event": "aurora", "time": START}).last["iteration"] == 2


def test_state_of_a_run_without_an_end_event(tmp_path):
    view = viewed(started(host=socket.gethostname()), *training(3)[1:])
    assert view.state(tmp_path) is RunState.KILLED
    with (tmp_path / "run.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert view.state(tmp_path) is RunState.RUNNING
    view.take({"event": "run_failed", "time": START + 9, "error": "no water", "kind": "StageFailedError"})
    assert view.state(tmp_path) is RunState.FAILED
    assert view.seconds(START + 1000.0) == 9.0


@pytest.mark.parametrize(
    ("age_s", "gap_s", "status"),
    [
        (5.0, 1.0, RunState.RUNNING),
        (500.0, 1.0, RunState.RUNNING),
        (700.0, 1.0, RunState.KILLED),
        (7000.0, 3600.0, RunState.RUNNING),
        (20000.0, 3600.0, RunState.KILLED),
    ],
)
def test_run_on_another_machine_is_judged_by_the_age_of_its_last_event(tmp_path, age_s, gap_s, status):
    """The directory may be copied from the other machine every few minutes, without the lock."""
    now = time.time()
    event = [iteration(number, time=now - age_s - gap_s * (3 - number)) for number in (1, 2, 3)]
    view = viewed(started(host="a-node-of-a-cluster"), *event)
    assert view.state(tmp_path) is status
    words = figures(view, status, 80).plain
    assert "a-node-of-a-cluster" in words
    assert ("last event" in words) == (status is RunState.RUNNING)


def test_texts_of_a_log_are_safe_to_show():
    view = viewed(started(case="case\x1b]0;owned\x07"), {"event": "warning", "time": START, "message": "a\x9b2Jb"})
    assert view.started["case"] == "case\\x1b]0;owned\\x07"
    assert view.warnings == ["a\\x9b2Jb"]


def write(path, *events, end="\n"):
    with path.open("a") as stream:
        stream.write("\n".join(json.dumps(event) for event in events) + end)


def test_following_reads_complete_lines_once(tmp_path):
    path = tmp_path / "events.jsonl"
    follower = EventFollower(tmp_path)
    write(path, started(), iteration(1))
    with path.open("a") as stream:
        stream.write('{"event": "itera')
    assert [event["event"] for event in follower.read_new()] == ["run_started", "iteration"]
    assert follower.read_new() == []
    with path.open("a") as stream:
        stream.write('tion", "iteration": 2}\n')
    assert [event["iteration"] for event in follower.read_new()] == [2]


def test_partial_lines_of_a_killed_run_are_skipped(tmp_path):
    (tmp_path / "events.jsonl").write_text('{"event": "ru\n[1]\n{"event": 3}\n\xff\n{"event": "phase", "name": "x"}\n')
    assert [event["event"] for event in EventFollower(tmp_path).read_new()] == ["phase"]


def test_following_detects_new_run_in_same_directory(tmp_path):
    path = tmp_path / "events.jsonl"
    follower = EventFollower(tmp_path)
    write(path, *training(3))
    assert len(follower.read_new()) == 6
    assert not follower.has_restarted
    path.write_text(json.dumps(started()) + "\n")
    assert [event["event"] for event in follower.read_new()] == ["run_started"]
    assert follower.has_restarted


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "does not exist"),
        (lambda folder: folder.write_text(""), "is a file"),
        (lambda folder: folder.mkdir(), "not the --output of a run"),
    ],
)
def test_following_directory_without_events_raises(tmp_path, make, words):
    make(tmp_path / "out")
    with pytest.raises(NothingToFollowError, match=words):
        EventFollower(tmp_path / "out").check()


def test_case_directory_gives_a_hint_to_its_output(tmp_path):
    (tmp_path / "output").mkdir()
    write(tmp_path / "output" / "events.jsonl", started())
    with pytest.raises(NothingToFollowError, match="subdirectory `output` has one"):
        EventFollower(tmp_path).check()
