"""Signals that are forwarded to the ranks the first time, and end the run the second time."""

import os
import signal
import threading

import pytest

from cobre.comm import launch
from cobre.comm.launch import signals
from cobre.comm.launch.signals import forwarding_signals

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers_are_restored():
    before = [signal.getsignal(number) for number in BOTH]
    yield
    assert [signal.getsignal(number) for number in BOTH] == before


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", BOTH)
def test_the_first_signal_is_forwarded(number):
    forwarded = []
    with forwarding_signals(BOTH, forwarded.append):
        send(number)
    assert forwarded == [number]


@pytest.mark.parametrize("second", BOTH)
def test_the_second_signal_raises_keyboard_interrupt(second, monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 0.0)
    forwarded = []
    with forwarding_signals(BOTH, forwarded.append):
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send(second)
    assert forwarded == [signal.SIGTERM]


def test_a_repeated_sigterm_is_forwarded_once(monkeypatch):
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
    seen = []

    def run():
        with forwarding_signals(BOTH, lambda _: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert seen == [before]


def count_down(comm):
    """Waits for a signal, and ends in its own way."""
    came = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: came.set())
    comm.barrier()
    launch.send_to_parent("ready")
    return came.wait(60)


def test_ranks_handle_a_forwarded_signal_and_return():
    """All of them get the signal, and all of them return."""
    ready = []

    def listen(rank, line):
        ready.append(rank)
        if len(ready) == 2:
            send(signal.SIGTERM)

    assert launch.run(count_down, 2, on_message=listen, forward_signals=BOTH) == [True, True]
