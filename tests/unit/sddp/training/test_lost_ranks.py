"""Training while a rank fails at a chosen call: the other rank reports it, and neither waits forever."""

import os
import re

import pytest
from systems_water import random_inflows

from cobre.comm import AbortedError, PeerLostError, launch
from cobre.comm.testing import FaultyCommunicator
from cobre.io.case import load_case
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import train_study

LIMIT = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 3}]}
LIMIT |= {"training.selection": {"method": "sampled", "forward_passes": 2}}
CALLS = 12  # more than before the first iteration, fewer than a training of three iterations makes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return random_inflows().write(tmp_path_factory.mktemp("random"))


def train(comm, folder):
    study = prepare(load_case(folder, LIMIT))
    return train_study(comm, ReadyStudy(study, make_solver(study, 1)))


def count_calls(comm, folder):
    train(comm, folder)
    return comm.sequence


def lose_rank_1(comm, folder, fault):
    if comm.rank == 1:
        train(FaultyCommunicator(comm, {CALLS: fault}), folder)
    try:
        train(comm, folder)
    except (PeerLostError, AbortedError) as error:
        launch.send_to_parent(f"{type(error).__name__}: {error}")


def die():
    os._exit(9)


def give_up():
    raise OSError("the disk is gone")


def test_calls_lie_inside_the_training(folder):
    assert min(launch.run(count_calls, 2, args=(folder,))) > CALLS


@pytest.mark.parametrize(
    ("fault", "seen_by_rank_0", "raised_here"),
    [
        (die, r"PeerLostError: .*rank 1 \(.*\) died", r"rank 1 .*exited with code 9"),
        (give_up, r"AbortedError: .*rank 1 \(.*\): OSError: the disk is gone", r"rank 1 .*the disk is gone"),
    ],
)
@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_failure_of_rank_in_training_is_reported_by_the_other(folder, backend, fault, seen_by_rank_0, raised_here):
    lines = []
    with pytest.raises(launch.WorkerError, match=raised_here) as caught:
        launch.run(
            lose_rank_1,
            2,
            backend,
            (folder, fault),
            output=launch.discard,
            on_message=lambda rank, line: lines.append((rank, line)),
        )
    assert caught.value.rank == 1
    ((rank, line),) = lines
    assert rank == 0 and re.match(seen_by_rank_0, line)
