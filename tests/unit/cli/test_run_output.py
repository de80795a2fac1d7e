"""Choice between table, lines and no progress, and their output."""

import io
import signal

import pytest
from event_streams import iteration, phase, started

import cobre
from cobre.cli.run_output import LineProgress, QuietProgress, SignalWatcher, choose_progress
from cobre.cli.run_table import LiveProgress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


class OldTerminal(Terminal):
    encoding = "iso-8859-1"


@pytest.fixture(autouse=True)
def _terminal_type(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")


def progress_for(stream, *, plain=False, quiet=False):
    return type(choose_progress(plain=plain, quiet=quiet, stream=stream))


def test_terminal_gets_a_table():
    assert progress_for(Terminal()) is LiveProgress


@pytest.mark.parametrize("stream", [io.StringIO(), OldTerminal()])
def test_pipes_and_terminals_without_utf_8_get_lines(stream):
    assert progress_for(stream) is LineProgress


def test_dumb_terminals_get_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert progress_for(Terminal()) is LineProgress


def test_flags_override_terminal_detection():
    assert progress_for(Terminal(), plain=True) is LineProgress
    assert progress_for(Terminal(), quiet=True) is QuietProgress


def test_lines_are_the_same_for_every_log():
    stream = io.StringIO()
    progress = LineProgress(stream)
    for event in (started(), phase("training"), iteration(2)):
        progress.emit(event)
    first, second, header, line = stream.getvalue().splitlines()
    assert first == f"cobre {cobre.__version__}: my_case, 2 workers (shm), 1 thread each"
    assert second == "training ..."
    assert header.split()[0] == "iteration"
    assert line.split() == ["2", "1,500,000.00", "2,100,000.00", "9,000", "8", "2.00"]
    assert stream.getvalue().isascii()


def test_quiet_prints_only_warnings(capsys):
    progress = QuietProgress()
    for event in (started(), iteration(1), {"event": "warning", "time": 0.0, "message": "look out"}):
        progress.emit(event)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "warning: look out\n")
    assert progress.has_events


def test_closed_table_remains_on_screen():
    stream = Terminal()
    progress = LiveProgress(stream)
    progress.expect("my_case")
    for event in (started(), phase("training"), iteration(1), iteration(2)):
        progress.emit(event)
    progress.close()
    assert "1,500,000.00 $" in stream.getvalue()
    progress.close()


def test_rank_without_events_draws_nothing():
    stream = Terminal()
    progress = LiveProgress(stream)
    progress.close()
    assert stream.getvalue() == ""
    assert not progress.has_events


def test_signals_are_shown_and_reach_their_handlers():
    taken = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: taken.append(number))
    try:
        notes = SignalWatcher()
        assert not notes.has_arrived()
        signal.raise_signal(signal.SIGTERM)
        assert notes.has_arrived()
        assert notes.has_arrived()
        notes.close()
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert taken == [signal.SIGTERM]


def test_default_split_is_explained():
    stream = io.StringIO()
    LineProgress(stream).emit(started() | {"split_reason": "a thread for each core"})
    assert stream.getvalue().splitlines()[1] == "  a thread for each core"


def test_resumed_run_shows_earlier_iterations_and_continuation():
    stream = io.StringIO()
    progress = LineProgress(stream)
    earlier = [iteration(number) for number in range(1, 31)]
    resumed = {"event": "resumed", "time": 0.0, "iteration": 30, "iterations": earlier}
    for event in (started(is_resumed=True), phase("training", iteration_limit=40), resumed, iteration(31)):
        progress.emit(event)
    lines = stream.getvalue().splitlines()
    at = lines.index("  resumed after iteration 30")
    assert [int(line.split()[0]) for line in lines[at - 20 : at]] == list(range(11, 31))
    assert int(lines[at + 1].split()[0]) == 31
