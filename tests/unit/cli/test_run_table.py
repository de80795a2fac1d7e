"""The table of a run fits its terminal."""

import io

import pytest
from event_streams import START, iteration, phase, started, training
from rich.console import Console

from cobre.cli.run_table import run_table
from cobre.runs.view import RunView


def draw_table(events, width, height=30, **settings):
    view = RunView()
    view.take_all(events)
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, **settings)
    console.print(run_table(view, width, height, START + 20.0))
    return console.file.getvalue()


def table_text(events, width, height=30):
    return draw_table(events, width, height, color_system=None)


def test_table_shows_all_lines():
    text = table_text(training(10), 100)
    for words in (
        "my_case",
        "2 workers (shm), 1 thread each",
        "iteration 10 of 20",
        "1.0 it/s",
        "20.0 s, 10.0 s left",
        "1,900,000.00 $",
        "2,100,000.00 $   ± 9.00 k$",
        "10.53 %",
        "40 cuts per stage, 100 LPs/s",
        "forward 20 %   backward 60 %",
        "rank 0",
        "90 % busy",
    ):
        assert words in text
    assert set("▁█") <= set(text)


PROGRESS = {
    "event": "progress",
    "time": START + 20.0,
    "iteration": 1,
    "elapsed_s": 60.0,
    "solves": 1276,
    "total_solves": 144_558,
    "solves_per_s": 8.6,
    "seconds_left": 491.0,
    "pass": "backward",
    "stage": 107,
}


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (100, "iteration 1: backward pass, stage 107; 1,276 of 144,558 LPs (1 %), 8.6 LPs/s, 8:11 left"),
        (80, "iteration 1: backward pass, stage 107, 1 %, 8.6 LPs/s, 8:11 left"),
    ],
)
def test_time_left_is_never_cut_off(width, words):
    assert words in table_text([started(), phase("training", iteration_limit=45), PROGRESS], width)


def test_estimate_of_long_study_is_not_cut_off():
    facts = {"seconds": 16200.0, "cores": 2, "iterations": 45, "forward_passes": 200, "cut_bytes": 9_400_000_000}
    estimate = {"event": "estimate", "time": START + 20.0, **facts}
    text = " ".join(table_text([started(), phase("training"), estimate], 80).split())
    assert "about 4.5 h on 2 cores for 45 iterations of 200 paths, and up to 9.40 GB of cuts" in text
    assert "for a trial of minutes add --iterations 2 --forward-passes 2 --scenarios 10" in text


COST = {"policy_cost": 1.953e6, "policy_cost_half_width": 1e4, "policy_cost_paths": 40, "policy_gap": 0.028}


def test_cost_of_the_policy_has_its_interval_and_a_gap_with_a_limit():
    text = table_text([started(), phase("training"), *(iteration(number, **COST) for number in range(1, 11))], 100)
    assert "policy cost         1,953,000.00 $   ± 10.00 k$ (estimated, 95 %)" in text
    assert "2.79 %   at most 3.32 %, 40 cuts per stage, 100 LPs/s" in text


def test_at_80_columns_notes_are_shortened_not_cut_off():
    events = [started(), phase("training"), *(iteration(number, **COST) for number in range(1, 11))]
    simulated = {"scenarios": 5, "mean_cost": 2.5e6, "half_width": 9e3}
    controlled = {"controlled_mean_cost": 2.4e6, "controlled_half_width": 2e3}
    end = {"event": "simulation_finished", "time": START, **simulated, **controlled}
    text = table_text([*events, end], 80)
    assert "at most 3.32 %, 40 cuts, 100 LPs/s" in text
    assert "controlled          2,400,000.00 $   ± 2.00 k$ (sampled, 95 %)\n" in text
    assert "…" not in text


def test_resumed_run_keeps_its_progress_on_one_line():
    resumed = {"event": "resumed", "time": START, "iteration": 29}
    numbers = range(1001, 1011)
    events = [started(), phase("training", iteration_limit=3000), resumed, *map(iteration, numbers)]
    wide, narrow = (table_text(events, width) for width in (100, 80))
    assert "iteration 1010 of 3000 (resumed after 29)" in wide
    assert sum("iteration 1010 of 3000" in line for line in narrow.splitlines()) == 1
    assert len(wide.splitlines()) == len(narrow.splitlines())


@pytest.mark.parametrize(("width", "words"), [(100, "2,500,000.00 $"), (40, "simulated 2.50 M$ ± 9.00 k$")])
def test_simulation_of_stored_policy_is_shown(width, words):
    event = {"event": "simulation_finished", "time": START, "scenarios": 5, "mean_cost": 2.5e6, "half_width": 9e3}
    assert words in table_text([started(), phase("simulation"), event], width)


@pytest.mark.parametrize("width", [20, 40, 60, 72, 80, 120, 300])
@pytest.mark.parametrize(
    "events",
    [
        [],
        [started()],
        [started(), phase("building")],
        training(1),
        training(100),
        training(5, ranks=64),
        [*training(3), iteration(4, upper_bound=None, half_width=None, gap=None)],
        [*training(3), {"event": "run_failed", "time": START, "error": "x", "kind": "y"}],
    ],
)
def test_no_line_is_wider_than_the_terminal(events, width):
    lines = table_text(events, width).splitlines()
    assert max((len(line) for line in lines), default=0) <= width
    assert len(lines) <= 20


def test_narrow_terminals_get_compact_view():
    text = table_text(training(10), 40)
    assert "training 10/20" in text
    assert "lower 1.90 M$" in text
    assert "ranks 90 to 90 % busy" in text


def test_short_terminals_get_compact_view():
    assert len(table_text(training(10), 100, height=8).splitlines()) <= 8


def test_table_shows_busiest_ranks():
    events = training(2, ranks=64)
    for event in events[-2:]:
        event["load"][40] = [5.0, 0.0]
    text = table_text(events, 100)
    assert "rank 40" in text
    assert "and 56 ranks with less to do" in text


def test_stopping_run_shows_how_to_end_at_once():
    view = RunView()
    view.take_all(training(3))
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(run_table(view, 100, 30, START, is_stopping=True))
    assert "Ctrl-C again ends at once" in console.file.getvalue()


def test_before_training_there_is_no_iteration_to_stop_after():
    view = RunView()
    view.take_all([started(), phase("building")])
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(run_table(view, 100, 30, START, is_stopping=True))
    assert console.file.getvalue().splitlines()[-1] == "stopping"


def test_no_color_suppresses_colours(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in draw_table(training(10), 100)
