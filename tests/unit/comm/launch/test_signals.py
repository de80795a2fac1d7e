"""Signals that are passed on to the ranks the first time, and end the run the second time."""

import os
import signal
import threading

import pytest

from cobre.comm import launch
from cobre.comm.launch import signals
from cobre.comm.launch.signals import forwarding_signals

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers_come_back():
    former = [signal.getsignal(number) for number in BOTH]
    yield
    assert [signal.getsignal(number) for number in BOTH] == former


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", BOTH)
def test_the_first_one_is_told(number):
    told = []
    with forwarding_signals(BOTH, told.append):
        send(number)
    assert told == [number]


@pytest.mark.parametrize("second", BOTH)
def test_the_second_one_is_an_interrupt(second, monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 0.0)
    told = []
    with forwarding_signals(BOTH, told.append):
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send(second)
    assert told == [signal.SIGTERM]


def test_sigterm_that_comes_along_two_ways_is_told_once(monkeypatch):
    monkeypatch.setattr(signals, "SAME_REQUEST_S", 3600.0)
    told = []
    with forwarding_signals(BOTH, told.append):
        send(signal.SIGTERM)
        send(signal.SIGTERM)
    assert told == [signal.SIGTERM]


def test_signals_that_were_not_named_do_what_they_did():
    told = []
    with pytest.raises(KeyboardInterrupt), forwarding_signals((signal.SIGTERM,), told.append):
        send(signal.SIGINT)
    assert told == []


def test_without_names_nothing_changes():
    before = signal.getsignal(signal.SIGINT)
    with forwarding_signals((), lambda _: None):
        assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_nothing_changes():
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


def test_ranks_end_in_their_own_way():
    """All of them get the signal, and all of them return."""
    ready = []

    def listen(rank, line):
        ready.append(rank)
        if len(ready) == 2:
            send(signal.SIGTERM)

    assert launch.run(count_down, 2, on_message=listen, forward_signals=BOTH) == [True, True]
