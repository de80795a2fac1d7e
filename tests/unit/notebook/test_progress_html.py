"""Progress as HTML; that a real notebook shows it is tested with the quickstart."""

from html.parser import HTMLParser

from cobre import notebook
from cobre.notebook.progress_html import MAX_POINTS, progress_html
from cobre.runs.view import RunView, view_of


def iteration(number, lower_bound, **more):
    event = {"event": "iteration", "iteration": number, "lower_bound": lower_bound, "upper_bound": 9.5}
    event |= {"gap": 9.5 / lower_bound - 1.0}
    return event | {"half_width": 0.5, "elapsed_s": 1.5, "time": 1.0, "cuts": 1, "load": [[3.0, 1.0]]} | more


def test_outside_a_notebook_nothing_is_drawn():
    assert not notebook.is_notebook()
    with notebook.progress() as emit:
        emit(iteration(1, 2.0))


def test_progress_of_run_has_all_rows():
    events = (
        {"event": "phase", "name": "building"},
        {"event": "warning", "message": "<b>odd</b>"},
        {"event": "phase", "name": "training", "iteration_limit": 40},
        {"event": "checkpoint", "iteration": 1},
        iteration(1, 2.0, load=[[3.0, 1.0], [1.0, 3.0]]),
        iteration(2, 4.0, load=[[3.0, 1.0], [3.0, 1.0]]),
    )
    text = progress_html(view_of(events))
    HTMLParser().feed(text)
    for words in ("training", "2 of 40, 1.5 s", "9.50 ± 0.50 $", "137.50 %", "75 %, 50 %", "<polyline"):
        assert words in text
    assert "<b>" not in text


def test_phase_is_shown_before_first_iteration():
    assert "starting" in progress_html(RunView())


def test_missing_bounds_are_drawn_as_dash():
    assert "- ± - $" in progress_html(view_of([iteration(1, 2.0, upper_bound=None, half_width=None, gap=None)]))


def test_curve_of_long_run_is_thinned_out():
    text = progress_html(view_of(iteration(number, float(number)) for number in range(1, 5001)))
    points = text.split('points="')[1].split('"')[0].split()
    assert len(points) <= MAX_POINTS
    assert len(text) < 4000
