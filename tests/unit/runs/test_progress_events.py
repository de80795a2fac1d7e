"""The view of a run during an iteration."""

import pytest

from cobre.runs.view import RunView

STARTED = {"event": "run_started", "time": 100.0}
TRAINING = {"event": "phase", "time": 100.0, "name": "training", "iteration_limit": 10}
HALF_DONE = {
    "event": "progress",
    "time": 130.0,
    "iteration": 1,
    "elapsed_s": 30.0,
    "solves": 500,
    "total_solves": 1000,
    "solves_per_s": 16.7,
    "seconds_left": 30.0,
    "pass": "backward",
    "stage": 7,
}


def _iteration(number, time):
    names = ("lower_bound", "upper_bound", "half_width", "gap", "cuts", "elapsed_s")
    return {"event": "iteration", "time": time, "iteration": number, **dict.fromkeys(names, 1.0), "load": []}


def _view(*events):
    view = RunView()
    view.take_all(events)
    return view


def test_first_iteration_estimates_duration_of_study():
    view = _view(STARTED, TRAINING, HALF_DONE)
    assert view.seconds_left == pytest.approx(30.0 + 9 * 60.0)
    assert view.progress_in_words == "iteration 1: backward pass, stage 7; 500 of 1,000 LPs (50 %)"


def test_finished_iteration_clears_progress():
    view = _view(STARTED, TRAINING, HALF_DONE, _iteration(1, 160.0))
    assert view.progress is None
    assert view.progress_in_words == ""


def test_time_left_counts_down_inside_an_iteration():
    before = [STARTED, TRAINING, _iteration(1, 160.0), _iteration(2, 220.0)]
    assert _view(*before).seconds_left == pytest.approx(8 * 60.0)
    inside = HALF_DONE | {"iteration": 3, "time": 250.0}
    assert _view(*before, inside).seconds_left == pytest.approx(8 * 60.0 - 30.0)


def test_tree_progress_counts_solved_lps():
    event = {"event": "progress", "time": 1.0, "iteration": 2, "elapsed_s": 1.0, "solves": 70, "solves_per_s": 70.0}
    assert _view(STARTED, TRAINING, event).progress_in_words == "iteration 2: 70 LPs"


@pytest.mark.parametrize("damage", [{"solves": "many"}, {"total_solves": None}, {"pass": 3}, {"iteration": None}])
def test_unexpected_events_are_ignored(damage):
    view = _view(STARTED, TRAINING, HALF_DONE | damage)
    assert isinstance(view.progress_in_words, str)
    assert view.seconds_left is None or view.seconds_left >= 0
