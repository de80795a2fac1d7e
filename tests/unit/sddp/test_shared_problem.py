"""A problem in a shared region: the same numbers, stored once per node."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cobre.comm import Backend
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.launch import run
from cobre.io.case import load_case
from cobre.sddp.problem.problem import PreparedStudy, Problem
from cobre.sddp.ranks import build_once_per_node, count_sharing_memory
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import with_iterations
from cobre.study.training.train import train_study

CASE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"


def two_reservoirs() -> PreparedStudy:
    return prepare(load_case(CASE, with_iterations(None, 3)))


def numbers(problem: Problem) -> list[bytes]:
    programs = [
        array.tobytes()
        for stage in problem.stages
        for array in (stage.program.cost, stage.program.value, stage.program.column_index, stage.program.row_upper)
    ]
    inflows = [opening.realisations.inflow_m3s.tobytes() for opening in problem.openings]
    return [*programs, *inflows, *(noise.tobytes() for noise in problem.noise.openings)]


def check_on_two_ranks(comm: Backend) -> None:
    """Assert what holds on each of two ranks; an assertion that fails there fails the test."""
    problem = two_reservoirs().problem
    shared = build_once_per_node(comm, lambda: problem)
    assert numbers(shared.value) == numbers(problem)
    assert shared.saved_bytes == shared.shared_bytes
    large = [opening.realisations.inflow_m3s for opening in shared.value.openings]
    assert all(not array.flags.writeable for array in large if array.nbytes >= 512)
    assert shared.shared_bytes >= sum(array.nbytes for array in large if array.nbytes >= 512)
    shared.close()
    assert numbers(shared.value) == numbers(problem), "numbers outlive the region"

    repeated = build_once_per_node(comm, lambda: replace(problem, stages=(problem.stages[0], problem.stages[0]))).value
    assert repeated.stages[0] is repeated.stages[1], "what was one object stays one"

    first, second, other = build_once_per_node(comm, lambda: [np.ones(100), np.ones(100), np.arange(100)]).value
    assert np.shares_memory(first, second) and not np.shares_memory(first, other), "equal arrays lie in one place"
    assert (first == 1.0).all() and (other == np.arange(100)).all()


def test_shared_numbers_are_equal_stored_once_and_read_only() -> None:
    run(check_on_two_ranks, 2, backend="shm")


def test_single_rank_keeps_original_problem() -> None:
    problem = two_reservoirs().problem
    with LocalCommunicator() as comm:
        shared = build_once_per_node(comm, lambda: problem)
        shared.close()
    assert shared.value is problem
    assert (shared.shared_bytes, shared.saved_bytes) == (0, 0)


def test_stages_share_equal_arrays() -> None:
    first, second, *_ = two_reservoirs().problem.stages
    assert second.program.row_start is first.program.row_start
    assert second.program.names.rows is first.program.names.rows
    assert second.plan.data.hydro.spillage_cost is first.plan.data.hydro.spillage_cost


def train_shared(comm: Backend) -> tuple[str, int, int, int]:
    built = []

    def build() -> PreparedStudy:
        built.append(comm.rank)
        return two_reservoirs()

    shared = build_once_per_node(comm, build)
    study = shared.value
    assert study.noise is study.problem.noise
    assert built == ([comm.rank] if comm.is_leader else [])
    digest = train_study(comm, ReadyStudy(study, make_solver(study, 1))).digest
    return digest, count_sharing_memory(comm), shared.shared_bytes, shared.saved_bytes


@pytest.mark.parametrize(("backend", "ranks", "seen"), [("local", 1, 1), ("shm", 2, 2), ("shm", 3, 3), ("tcp", 2, 2)])
def test_every_rank_trains_on_the_common_numbers(backend: str, ranks: int, seen: int) -> None:
    study = two_reservoirs()
    with LocalCommunicator() as comm:
        alone = train_study(comm, ReadyStudy(study, make_solver(study, 1))).digest
    for digest, visible, size, saved in run(train_shared, ranks, backend=backend):
        assert digest == alone
        assert visible == seen
        assert saved == (seen - 1) * size > -1
