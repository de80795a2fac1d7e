"""Calls of the solver that end early, by a signal or by the caller, also inside one long solve."""

import os
import signal
import threading

import numpy as np
import pytest
from small_programs import (
    all_chains,
    cut_rows,
    no_cuts,
    program,
    random_cuts,
    random_states,
    realisations,
)
from test_library_fallback import selling, small_loads

from cobre.solver.batches import Chains, Outputs, no_bases
from cobre.solver.simplex import SimplexOptions, SimplexSolver

METHODS = pytest.mark.parametrize("max_dense_rows", [100, 0], ids=["dense", "sparse"])
THREADS = pytest.mark.parametrize("threads", [1, 3])


class StopRequested(BaseException):
    """An exception that a caller raises to end a call."""


class StopAtNthPoll:
    """A callback that stops at the n-th call."""

    def __init__(self, times):
        self.left = times

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            raise StopRequested


def long_call(solver, points=20_000, stage=None, noise=None):
    """Solve for minutes; the results are never needed."""
    stage = stage or program()
    solver.load(0, stage)
    states = np.repeat(random_states(10), points // 10, axis=0)
    noise = noise or realisations(50)
    openings = np.arange(len(noise.load_mw), dtype=np.int32)
    chains = all_chains(states, noise, openings, no_bases(stage), np.full(len(states), -1, np.int32))
    return solver.solve(0, cut_rows(*random_cuts(300, 2)), chains, Outputs(gradient=True))


def short_call(solver):
    """Return the bits of a call that is not stopped."""
    return long_call(solver, points=10).gradient.tobytes()


@METHODS
@THREADS
def test_call_polls_and_can_be_stopped(threads, max_dense_rows):
    solver = SimplexSolver(threads, SimplexOptions(max_dense_rows=max_dense_rows))
    expected = short_call(solver)
    solver.poll = StopAtNthPoll(3)  # polled before the call, and twice inside
    with pytest.raises(StopRequested):
        long_call(solver)
    solver.poll = None
    assert short_call(solver) == expected, "what was stopped leaves no trace"


@THREADS
def test_poll_before_call_can_stop_it(threads):
    solver = SimplexSolver(threads)
    solver.poll = StopAtNthPoll(1)
    with pytest.raises(StopRequested):
        short_call(solver)


def test_calls_of_highs_can_be_stopped():
    """These LPs of the dense simplex end at HiGHS, many of them with other settings, which must not persist."""
    solver = SimplexSolver(1, SimplexOptions(max_dense_rows=100, max_added_per_round=1))
    expected = long_call(solver, 20, selling(0), small_loads()).gradient.tobytes()
    assert long_call(solver, 20, selling(0), small_loads()).library_solves > 0
    for times in range(2, 8):
        solver.poll = StopAtNthPoll(times)
        with pytest.raises(StopRequested):
            long_call(solver, 1_000_000, selling(0), small_loads())
        solver.poll = None
        assert long_call(solver, 20, selling(0), small_loads()).gradient.tobytes() == expected


@THREADS
def test_ctrl_c_ends_a_call(threads):
    """Use the default handler of Python, which raises KeyboardInterrupt."""
    solver = SimplexSolver(threads)
    expected = short_call(solver)
    is_inside = threading.Event()
    solver.poll = SetEventAtNthPoll(is_inside, 2)
    sender = threading.Thread(target=lambda: (is_inside.wait(60), os.kill(os.getpid(), signal.SIGINT)))
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        long_call(solver)
    sender.join()
    solver.poll = None
    assert short_call(solver) == expected


class SetEventAtNthPoll:
    """A callback that sets an event at the n-th call, and never stops."""

    def __init__(self, event, times):
        self._event, self._left = event, times

    def __call__(self):
        self._left -= 1
        if self._left == 0:
            self._event.set()


def test_waiting_thread_polls():
    """One chain is far longer than the others, so the calling thread may become idle."""
    stage, noise = program(), realisations(3)
    solver = SimplexSolver(2)
    solver.load(0, stage)
    lengths = np.array([2_000_000, 1], np.int32)
    order = np.zeros(lengths.sum(), np.int32)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    chains = Chains(random_states(2), start, noise, order, no_bases(stage), np.full(2, -1, np.int32))
    solver.poll = StopAtNthPoll(3)
    with pytest.raises(StopRequested):
        solver.solve(0, no_cuts(2), chains, Outputs())
