"""Under a risk measure, every output names the mean of sampled paths correctly."""

import io
from pathlib import Path

import pytest
from event_streams import START, iteration, phase, started
from rich.console import Console

from cobre.cli.run_output import LineProgress, print_summary
from cobre.cli.run_table import run_table
from cobre.notebook.progress_html import progress_html
from cobre.runs.summary import RunSummary
from cobre.runs.view import view_of
from cobre.tui.panels import plain_panels

EVENTS = [started(), phase("training", is_risk_averse=True), *(iteration(number) for number in (1, 2, 3))]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def view_of_run():
    return view_of(EVENTS)


def table(width):
    console = Console(file=io.StringIO(), width=width, height=30, color_system=None)
    console.print(run_table(view_of_run(), width, 30, START + 20.0))
    return console.file.getvalue()


def lines():
    stream = io.StringIO()
    progress = LineProgress(stream)
    for event in EVENTS:
        progress.emit(event)
    return stream.getvalue()


def notebook():
    return progress_html(view_of_run())


def summary(stream=None, **changes):
    facts = {
        "lower_bound": 2e6,
        "upper_bound": 1.5e6,
        "upper_bound_half_width": 1e5,
        "gap": -0.25,
        "iterations": 3,
        "stop_reason": "iteration limit of 3 reached",
        "stop_kind": None,
        "is_interrupted": False,
        "digest": "abc",
        "training_seconds": 1.0,
        "output": "out",
        "is_risk_averse": True,
        "verdict": "levelled off: " + "words " * 30,
    }
    stream = stream or io.StringIO()
    print_summary(RunSummary(**facts | changes), None, stream, with_bounds=True)
    return stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [lambda: table(100), lambda: table(50), lines, notebook, summary, lambda: plain_panels(view_of_run(), Path("out"))],
    ids=["table", "small table", "lines", "notebook", "summary", "top"],
)
def test_no_upper_bound_and_no_gap_is_shown(text):
    shown = text()
    assert "upper" not in shown
    assert "5.0 %" not in shown  # the gap
    assert "mean" in shown


def test_exact_bounds_of_trees_are_bounds_under_a_risk_measure_too():
    text = summary(upper_bound_is_exact=True, upper_bound_half_width=0.0, gap=0.0)
    assert "upper bound 1,500,000.00 $ (exact: all paths)" in text
    assert "gap 0.00 % of the lower bound" in text


def test_sentences_wrap_on_terminals_but_not_in_logs(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    narrow = summary(Terminal())
    assert max(map(len, narrow.splitlines())) <= 40
    assert "levelled off: " + ("words " * 30).strip() in summary()


def test_single_path_cost_is_printed_with_gap():
    facts = {"is_risk_averse": False, "lower_bound": 100.0, "upper_bound": 140.0, "upper_bound_half_width": 3.0}
    shown = summary(**facts, gap=0.5, policy_cost=150.0, policy_cost_half_width=None, policy_cost_paths=1)
    assert "estimated cost of the policy 150.00 $ (from 1 path, without a confidence interval)" in shown
    assert "gap 50.00 % of the lower bound\n" in shown  # without the sampling error of the upper bound


def test_interval_slightly_below_lower_bound_has_no_gap():
    facts = {"is_risk_averse": False, "lower_bound": 100.0, "upper_bound": 99.0, "upper_bound_half_width": 3.0}
    shown = summary(**facts, gap=-0.001, policy_cost=99.9, policy_cost_half_width=0.06, policy_cost_paths=30)
    assert "gap -0.100 % of the lower bound, at most 0.00 % (95 % confidence)" in shown
