"""Signals that are forwarded to the ranks twice, and end the run the third time."""

import _thread
import os
import signal
import threading

import pytest

from cobre.comm import launch
from cobre.comm.launch import signals
from cobre.comm.launch.signals import SignalCounter, SignalForwarder, forwarding_signals

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers_are_restored():
    before = [signal.getsignal(number) for number in BOTH]
    yield
    assert [signal.getsignal(number) for number in BOTH] == before


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", BOTH)
def test_first_signal_is_forwarded(number):
    forwarded = []
    with forwarding_signals(BOTH, forwarded.append):
        send(number)
    assert forwarded == [number]


@pytest.mark.parametrize("third", BOTH)
def test_third_signal_raises_keyboard_interrupt(third, monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 0.0)
    forwarded = []
    with forwarding_signals(BOTH, forwarded.append):
        send(signal.SIGTERM)
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(third)
    assert forwarded == [signal.SIGTERM, signal.SIGINT]


class Handled:
    """A handler that counts arrivals as Python's does: those since it last ran."""

    def __init__(self):
        self.counts = []
        self._counter = SignalCounter()

    def __enter__(self):
        self._previous = signal.signal(signal.SIGINT, lambda number, _: self.counts.append(self.arrivals(number)))
        self._counter.start([signal.SIGINT])
        return self

    def __exit__(self, *_):
        signal.signal(signal.SIGINT, self._previous)

    def arrivals(self, number):
        return self._counter.arrivals(number)


def test_two_signals_during_one_statement_count_twice():
    """Python runs the handler between two statements, for all signals since: once, or once more without an arrival."""
    with Handled() as handled:
        # A single call from Python's view, in which the kernel delivers both.
        list(map(os.kill, [os.getpid()] * 2, [signal.SIGINT] * 2))
    assert sum(handled.counts) == 2


def test_handler_called_without_arrival_counts_once():
    with Handled() as handled:
        _thread.interrupt_main()
    assert handled.counts == [1]


def test_two_signals_at_once_are_both_forwarded():
    forwarded = []
    with forwarding_signals(BOTH, forwarded.append):
        list(map(os.kill, [os.getpid()] * 2, [signal.SIGINT] * 2))
    assert forwarded == [signal.SIGINT, signal.SIGINT]


def test_second_signal_is_forwarded_as_other_kind():
    """The kernel keeps one pending signal of each kind."""
    sent, second_calls = [], []
    forwarder = SignalForwarder(BOTH)
    forwarder.send_to_ranks, forwarder.on_second_signal = sent.append, lambda: second_calls.append(True)
    forwarder(signal.SIGINT)
    assert (sent, second_calls, forwarder.second_signal) == ([signal.SIGINT], [], None)
    forwarder(signal.SIGINT)
    assert (sent, second_calls, forwarder.second_signal) == ([signal.SIGINT, signal.SIGTERM], [True], signal.SIGINT)


def test_repeated_sigterm_is_forwarded_once(monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 3600.0)
    forwarded = []
    with forwarding_signals(BOTH, forwarded.append):
        send(signal.SIGTERM)
        send(signal.SIGTERM)
    assert forwarded == [signal.SIGTERM]


def test_other_signals_keep_their_handlers():
    forwarded = []
    with pytest.raises(KeyboardInterrupt), forwarding_signals((signal.SIGTERM,), forwarded.append):
        send(signal.SIGINT)
    assert forwarded == []


def test_without_signals_no_handler_is_installed():
    before = signal.getsignal(signal.SIGINT)
    with forwarding_signals((), lambda _: None):
        assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_no_handler_is_installed():
    before = signal.getsignal(signal.SIGINT)
    masks = []

    def run():
        with forwarding_signals(BOTH, lambda _: None):
            masks.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert masks == [before]


def count_down(comm):
    """Wait for a signal, and end in the rank's own way."""
    came = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: came.set())
    comm.barrier()
    launch.send_to_parent("ready")
    return came.wait(60)


def test_ranks_handle_a_forwarded_signal_and_return():
    """All ranks receive the signal and return."""
    ready = []

    def listen(rank, line):
        ready.append(rank)
        if len(ready) == 2:
            send(signal.SIGTERM)

    assert launch.run(count_down, 2, on_message=listen, forward_signals=BOTH) == [True, True]
