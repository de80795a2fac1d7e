"""Runs that were started more than once: which iterations count for readers of the event log."""

import json

import pytest

from cobre.core.file_names import EVENT_FILE
from cobre.runs.events import EventLog, new_event
from cobre.runs.view import RunView, read_view, view_of


def iteration(number, bound, load=()):
    numbers = {"lower_bound": bound, "upper_bound": bound, "half_width": 0.0, "gap": 0.0, "cuts": 1}
    return new_event("iteration", iteration=number, load=load, **numbers)


FIRST = [new_event("run_started", is_resumed=False), *(iteration(number, float(number)) for number in (1, 2, 3, 4))]
RESUMED = [new_event("run_started", is_resumed=True), iteration(3, 30.0), iteration(4, 40.0), iteration(5, 50.0)]
ANEW = [new_event("run_started", is_resumed=False), iteration(1, 100.0)]


def bounds(view):
    return [event["lower_bound"] for event in view.iterations]


def test_resumed_run_replaces_repeated_iterations():
    assert bounds(view_of(FIRST + RESUMED)) == [1.0, 2.0, 30.0, 40.0, 50.0]


def test_run_resumed_and_killed_early_has_only_stored_iterations():
    assert bounds(view_of(FIRST + RESUMED[:2])) == [1.0, 2.0, 30.0]


def test_new_run_replaces_earlier_runs():
    assert bounds(view_of(FIRST + RESUMED + ANEW)) == [100.0]


def test_end_of_earlier_start_is_dropped():
    ends = [new_event("training_finished", stop_kind="signal"), new_event("run_finished")]
    view = view_of(FIRST + ends + RESUMED)
    assert view.trained is None
    assert view.finished is None


@pytest.mark.parametrize("number", [None, True, "2", 2.0])
def test_iterations_without_a_whole_number_are_left_out(number):
    assert bounds(view_of([*FIRST, iteration(number, 9.0)])) == [1.0, 2.0, 3.0, 4.0]


def test_loads_are_counted_from_last_start():
    first = [FIRST[0], iteration(1, 1.0, [[9.0, 1.0], [5.0, 5.0]])]
    resumed = [RESUMED[0], iteration(2, 2.0, [[1.0, 1.0], [2.0, 0.0]]), iteration(3, 3.0, [[1.0, 1.0], [2.0, 0.0]])]
    loads = view_of(first + resumed).loads
    assert [(total.busy_s, total.waiting_s, total.times_slowest) for total in loads] == [(2.0, 2.0, 0), (4.0, 0.0, 2)]
    assert [total.busy_share for total in loads] == [0.5, 1.0]


def test_log_equals_event_stream(tmp_path):
    log = EventLog(tmp_path, append=False)
    for event in FIRST + RESUMED:
        log.emit(event)
    log.close()
    view, damaged = read_view(tmp_path / EVENT_FILE)
    assert bounds(view) == bounds(view_of(FIRST + RESUMED))
    assert damaged == []


def test_damaged_lines_are_numbered_except_incomplete_last_line(tmp_path):
    path = tmp_path / EVENT_FILE
    path.write_text(f'{json.dumps(FIRST[0])}\nnoise\n\n[1]\n{json.dumps(FIRST[1])}\n{{"event": "iter')
    view, damaged = read_view(path)
    assert bounds(view) == [1.0]
    assert damaged == [2, 4]


def test_complete_last_line_without_newline_is_read(tmp_path):
    path = tmp_path / EVENT_FILE
    path.write_text(f"{json.dumps(FIRST[0])}\n{json.dumps(FIRST[1])}")
    assert bounds(read_view(path)[0]) == [1.0]


def test_missing_log_is_a_run_not_started(tmp_path):
    view, damaged = read_view(tmp_path / EVENT_FILE)
    assert (view.iterations, view.started, damaged) == ([], {}, [])


GOES_ON = {
    "event": "resumed",
    "time": 1_000_000.0,
    "iteration": 2,
    "iterations": [iteration(number, float(number)) | {"time": 999_990.0 + number} for number in (1, 2)],
}


def test_resume_event_replays_earlier_iterations():
    begun = [new_event("run_started", is_resumed=True) | {"time": 999_995.0}, new_event("phase", name="training")]
    view = view_of([*begun, GOES_ON, iteration(3, 30.0)])
    assert bounds(view) == [1.0, 2.0, 30.0]
    assert view.resumed["iteration"] == 2


def test_resume_drops_iterations_after_checkpoint():
    assert bounds(view_of([*FIRST, RESUMED[0], GOES_ON])) == [1.0, 2.0]


def test_pause_before_resume_is_not_counted():
    """Two iterations of ten seconds each after a break of days: 80 s are left for eight."""
    view = view_of([iteration(1, 1.0) | {"time": 0.0}])
    begun = 500_000.0
    events = [new_event("run_started", is_resumed=True) | {"time": begun}]
    events += [new_event("phase", name="training", iteration_limit=10) | {"time": begun}]
    events += [iteration(number, 2.0) | {"time": begun + 10.0 * number, "solves": 50} for number in (2, 3)]
    view.take_all(events)
    assert view.iterations_per_s == pytest.approx(0.1)
    assert view.solves_per_s == pytest.approx(5.0)
    assert view.seconds_left == pytest.approx(70.0)


@pytest.mark.parametrize("damage", [{"iteration": "2"}, {"iterations": [{"iteration": 1}]}])
def test_damaged_resume_changes_nothing(damage):
    view = RunView()
    view.take(GOES_ON | damage)
    assert view.iterations == [] and view.resumed is None
