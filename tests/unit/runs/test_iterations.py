"""Iterations of a run that was resumed, as all readers of its events see them."""

from cobre.runs.event_history import read_history
from cobre.runs.events import EventLog, new_event
from cobre.runs.iterations import iterations_of
from cobre.runs.view import RunView


def iteration(number, bound):
    numbers = {"lower_bound": bound, "upper_bound": bound, "half_width": 0.0, "gap": 0.0, "cuts": number}
    return new_event("iteration", iteration=number, **numbers)


FIRST = [new_event("run_started", is_resumed=False), *(iteration(number, float(number)) for number in (1, 2, 3, 4))]
RESUMED = [new_event("run_started", is_resumed=True), iteration(3, 30.0), iteration(4, 40.0), iteration(5, 50.0)]
ANEW = [new_event("run_started", is_resumed=False), iteration(1, 100.0)]


def bounds(events):
    return [event["lower_bound"] for event in events]


def test_a_resumed_run_replaces_what_it_does_again():
    assert bounds(iterations_of(FIRST + RESUMED)) == [1.0, 2.0, 30.0, 40.0, 50.0]


def test_a_run_that_was_resumed_and_killed_early_has_no_iterations_after_its_last():
    assert bounds(iterations_of(FIRST + RESUMED[:2])) == [1.0, 2.0, 30.0]


def test_a_new_run_forgets_those_before_it():
    assert bounds(iterations_of(FIRST + RESUMED + ANEW)) == [100.0]


def test_numbers_that_are_none_are_left_out():
    odd = [new_event("iteration", iteration=number) for number in (None, True, "2", 2.0)]
    assert bounds(iterations_of(FIRST + odd)) == [1.0, 2.0, 3.0, 4.0]


def test_live_views_and_reports_agree(tmp_path):
    log = EventLog(tmp_path, append=False)
    for event in FIRST + RESUMED:
        log.emit(event)
    log.close()
    view = RunView()
    view.take_all(FIRST + RESUMED)
    assert bounds(view.iterations) == bounds(read_history(tmp_path / "events.jsonl").iterations)
