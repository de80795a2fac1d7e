"""Iterations that are dropped at every point of training: the run ends as after the iteration before, bit for bit."""

import signal

import pytest
from example_study import EXAMPLE, overrides

from cobre.comm import launch
from cobre.comm.backends.local import LocalCommunicator
from cobre.runs.events import no_events
from cobre.sddp.training.loop import Interruption
from cobre.study.preparation.on_ranks import ReadyStudy, as_case
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import TrainingRequest
from cobre.study.training import stop_request
from cobre.study.training.checkpoints import list_checkpoints
from cobre.study.training.stop_request import NoIterationError, StopRequest
from cobre.study.training.train import train_study

ITERATIONS = 4
CASES = {
    "plain": {},
    "selection": {"training.cut_selection": {"selection": {"method": "level1", "check_frequency": 1}}},
    "window": {
        "training.cut_selection": {
            "selection": {"method": "domination", "domination_tolerance": 0.0, "check_frequency": 2}
        }
    },
}


class DropAt(StopRequest):
    """Send two signals at the n-th stop check; 0: never."""

    def __init__(self, times):
        super().__init__()
        self._left = times
        self.asked = 0

    def check(self):
        self.asked += 1
        if self.asked == self._left:
            self._request(signal.SIGINT)
            self._request(signal.SIGINT)
        super().check()


def ready_study(more, iterations=ITERATIONS):
    passes = {"training.selection": {"method": "sampled", "forward_passes": 2}}
    study = prepare(as_case(EXAMPLE, overrides(iterations, **passes, **more))[0])
    return ReadyStudy(study, make_solver(study, 1))


def train(ready, stop=None, **options):
    with LocalCommunicator() as comm:
        return train_study(comm, ready, TrainingRequest(**options), no_events, stop)


@pytest.mark.parametrize("more", CASES.values(), ids=CASES)
def test_dropped_iteration_is_rolled_back(tmp_path, more):
    ready = ready_study(more)
    asked = DropAt(0)
    whole = train(ready, asked)
    digests = {
        n: train(ready_study(more, n), checkpoints=tmp_path / f"whole-{n}").digest for n in range(1, ITERATIONS + 1)
    }
    dropped_in = set()
    for times in range(1, asked.asked + 1, 5):
        folder = tmp_path / str(times)
        stop = DropAt(times)
        try:
            result = train(ready, stop, checkpoints=folder, checkpoint_every=2)
        except KeyboardInterrupt:
            assert not list_checkpoints(folder), "no iteration was complete"
            continue
        if not result.is_dropped:
            continue  # it was asked less often than before
        done = len(result.history)
        dropped_in.add(done + 1)
        assert result.stop.kind == "interrupted"
        assert result.digest == digests[done]
        (newest, *_) = list_checkpoints(folder)
        (expected, *_) = list_checkpoints(tmp_path / f"whole-{done}")
        assert newest.name == expected.name
        assert train(ready, checkpoints=folder, resume=True).digest == whole.digest
    assert dropped_in == set(range(2, ITERATIONS + 1))


def train_and_drop(comm, dropping, times):
    """Drop on rank `dropping`; return (iterations, digest, reason) of rank 0."""
    stop = DropAt(times if comm.rank == dropping else 0)
    trained = train_study(comm, ready_study({}), TrainingRequest(), no_events, stop)
    return trained.is_dropped, len(trained.history), trained.digest, trained.stop.reason


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("dropping", [0, 1])
def test_dropping_rank_makes_all_ranks_drop(backend, dropping):
    """Check that all ranks return, each with an iteration that it knows to be complete."""
    ready = ready_study({}, 1)
    asked = DropAt(0)
    train(ready, asked)
    # Second of four iterations: each rank checks for stop requests before its own calls.
    ended = launch.run(train_and_drop, 2, backend, (dropping, asked.asked + 3), timeout_s=100)
    digests = {n: train(ready_study({}, n)).digest for n in {count for _, count, *_ in ended}}
    for is_dropped, count, digest, reason in ended:
        assert is_dropped and count < ITERATIONS
        assert digest == digests[count]
        assert reason == "interrupted (Ctrl-C)"


class SigtermAt(StopRequest):
    """SIGTERM when training asks for the n-th time whether to continue."""

    def __init__(self, times, time_limit_s=None):
        super().__init__(time_limit_s)
        self._left = times

    def check(self):
        self._left -= 1
        if self._left == 0:
            self._request(signal.SIGTERM)
        super().check()


def test_sigterm_does_not_wait_for_a_long_iteration(monkeypatch):
    monkeypatch.setattr(stop_request, "GRACE_PERIOD_S", 0.0)
    asked = DropAt(0)
    train(ready_study({}, 1), asked)
    result = train(ready_study({}), SigtermAt(asked.asked + 3))
    assert result.is_dropped and len(result.history) == 1
    assert result.stop.kind == "terminated"


def test_sigterm_gives_an_iteration_time_to_end(monkeypatch):
    monkeypatch.setattr(stop_request, "GRACE_PERIOD_S", 3600.0)
    result = train(ready_study({}), SigtermAt(3))
    assert not result.is_dropped and len(result.history) == 1
    assert result.stop.kind == "terminated"


def test_time_limit_before_the_first_iteration_is_complete(monkeypatch):
    monkeypatch.setattr(stop_request, "GRACE_PERIOD_S", 0.0)
    with pytest.raises(NoIterationError, match="before the first iteration was complete"):
        train(ready_study({}), StopRequest(0.0))


def test_time_limit_does_not_wait_for_a_long_iteration(monkeypatch):
    monkeypatch.setattr(stop_request, "GRACE_PERIOD_S", 0.0)
    stop = StopRequest(3600.0)
    seen = []

    def emit(event):
        if event["event"] == "iteration":
            seen.append(event["iteration"])
            stop._deadline = 0.0  # it passes between two iterations

    with LocalCommunicator() as comm:
        result = train_study(comm, ready_study({}), TrainingRequest(), emit, stop)
    assert result.is_dropped and seen == [1] and len(result.history) == 1
    assert result.stop.kind == Interruption.TIME_LIMIT.stop.kind
