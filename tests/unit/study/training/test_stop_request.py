"""Stop requests by Ctrl-C, SIGTERM and time limits."""

import os
import signal
import threading

import pytest

from cobre.comm import TerminatedError
from cobre.comm.launch import signals
from cobre.sddp.training.loop import Interruption
from cobre.study.training.stop_request import StopRequest


@pytest.fixture(autouse=True)
def restore_handlers():
    """Restore the signal handlers after a test."""
    previous = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == previous


def send(number):
    os.kill(os.getpid(), number)


def test_no_interruption_without_signal_or_time_limit():
    with StopRequest() as stop:
        assert stop.interruption() is Interruption.NONE


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, Interruption.INTERRUPTED), (signal.SIGTERM, Interruption.TERMINATED)],
)
def test_first_signal_is_remembered(number, expected):
    with StopRequest() as stop:
        send(number)
        assert stop.interruption() is expected
        assert stop.interruption() is expected


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_raises_keyboard_interrupt(first, second, monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 0.0)
    with StopRequest():
        send(first)
        with pytest.raises(KeyboardInterrupt) as caught:
            send(second)
    assert isinstance(caught.value, TerminatedError) is (second is signal.SIGTERM)


def test_duplicate_sigterm_counts_once(monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 3600.0)
    with StopRequest() as stop:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert stop.interruption() is Interruption.TERMINATED
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_handlers_are_restored_after_block():
    with StopRequest():
        pass
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_handlers_are_restored_after_error():
    with pytest.raises(LookupError), StopRequest():
        raise LookupError


def test_passed_time_limit_requests_stop():
    with StopRequest(0.0) as stop:
        assert stop.interruption() is Interruption.TIME_LIMIT


def test_future_time_limit_requests_nothing():
    with StopRequest(3600.0) as stop:
        assert stop.interruption() is Interruption.NONE


def test_signal_takes_precedence_over_a_time_limit():
    with StopRequest(0.0) as stop:
        send(signal.SIGINT)
        assert stop.interruption() is Interruption.INTERRUPTED


def test_in_another_thread_only_the_time_limit_counts():
    seen = []

    def run():
        with StopRequest(0.0) as stop:
            seen.append((stop.interruption(), signal.getsignal(signal.SIGINT)))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert seen == [(Interruption.TIME_LIMIT, before)]


def test_every_interruption_has_its_own_reason():
    words = [kind.stop.reason for kind in Interruption if kind is not Interruption.NONE]
    assert all(words) and len(set(words)) == len(words)
