"""Where a study runs, decided from the arguments and the environment before anything starts."""

import numpy as np
import pytest

from cobre.comm import (
    BackendError,
    BackendNotAvailableError,
    InitializationFailedError,
    InvalidBackendError,
    MissingConfigurationError,
)
from cobre.comm.cores import usable_cores
from cobre.comm.detection import PREFERENCE
from cobre.runs.events import new_event
from cobre.study.placement import (
    ONE_CORE,
    ONE_THREAD_PER_RANK,
    THREADS_ARE_BEST,
    WORKERS_FOR_A_TREE,
    WORKERS_OF_BACKEND,
    Placement,
    WorldRequest,
    call_on_ranks,
    choose_placement,
    command_placement,
)
from cobre.study.unchecked_config import UncheckedConfig

TCP = {"COBRE_TCP_COORDINATOR": "127.0.0.1", "COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "2"}
SRUN = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}
SHM = {"COBRE_SHM_NAME": "cobre-x", "COBRE_SHM_RANK": "1", "COBRE_SHM_SIZE": "2"}


@pytest.mark.parametrize(
    ("backend", "workers", "environ", "expected"),
    [
        ("auto", 1, {}, Placement("local", 1)),
        ("auto", 3, {}, Placement("shm", 3)),
        ("local", None, {}, Placement("local", 1)),
        ("shm", 1, {}, Placement("shm", 1)),
        ("shm", 2, {}, Placement("shm", 2)),
        (" TCP ", 2, {}, Placement("tcp", 2)),
        ("auto", np.int64(2), {}, Placement("shm", 2)),
        ("auto", None, TCP, Placement("tcp", None)),
        ("tcp", None, TCP, Placement("tcp", None)),
        ("auto", None, SHM, Placement("shm", None)),
        ("shm", 2, TCP, Placement("shm", 2)),
        ("local", 1, TCP, Placement("local", 1)),
        ("auto", 2, {"COBRE_COMM_BACKEND": "tcp"}, Placement("tcp", 2)),
        ("shm", 2, {"COBRE_COMM_BACKEND": "tcp"}, Placement("shm", 2)),
        ("auto", 2, {"COBRE_SHM_TIMEOUT_SECS": "5"}, Placement("shm", 2)),
        ("auto", 2, {"PMI_RANK": "0"}, Placement("shm", 2)),
        ("auto", 2, {"SLURM_PROCID": "3"}, Placement("shm", 2)),
        ("auto", 2, SRUN | {"SLURM_STEP_NUM_TASKS": "1"}, Placement("shm", 2)),
        ("shm", 2, SRUN, Placement("shm", 2)),
        ("auto", 1, SRUN | {"COBRE_COMM_BACKEND": "local"}, Placement("local", 1)),
    ],
)
def test_placement_by_arguments_and_environment(backend, workers, environ, expected):
    found = choose_placement(WorldRequest(backend, workers), environ)
    assert (found.backend, found.size) == (expected.backend, expected.size)


def test_default_placement_is_threads_of_this_process():
    assert choose_placement(environ={}) == Placement("local", 1, usable_cores())


@pytest.mark.parametrize(
    ("backend", "workers", "environ", "threads_suffice", "reason"),
    [
        ("auto", None, {}, True, THREADS_ARE_BEST),
        ("auto", None, {}, False, WORKERS_FOR_A_TREE),
        ("shm", None, {}, True, WORKERS_OF_BACKEND),
        ("auto", None, TCP, True, ONE_THREAD_PER_RANK),
    ],
)
def test_default_split_has_a_reason(backend, workers, environ, threads_suffice, reason):
    placement = choose_placement(WorldRequest(backend, workers), environ, threads_suffice=threads_suffice)
    assert placement.reason == (reason if usable_cores() > 1 else ONE_CORE)


def test_requested_split_has_no_reason():
    assert choose_placement(WorldRequest("auto", 2), {}).reason == ""
    assert choose_placement(WorldRequest(threads=2), {}).reason == ""


def test_worker_per_core_if_threads_do_not_suffice():
    cores = usable_cores()
    assert choose_placement(environ={}, threads_suffice=False) == Placement("shm" if cores > 1 else "local", cores, 1)
    alone = choose_placement(WorldRequest("local"), {}, threads_suffice=False)
    assert alone == Placement("local", 1, cores)


def outline(**selection):
    return UncheckedConfig({"training": {"selection": selection}})


def test_tree_gets_worker_per_core():
    found = command_placement(WorldRequest(), outline(method="enumerated"), {})
    assert found == choose_placement(environ={}, threads_suffice=False)


def test_no_idle_workers_are_started(monkeypatch):
    monkeypatch.setattr("cobre.study.placement.usable_cores", lambda: 4)
    passes = outline(method="sampled", forward_passes=2)
    found = command_placement(WorldRequest("shm"), passes, {})
    assert (found, found.reason) == (Placement("shm", 2, 2), "no more workers than forward passes or scenarios (2)")
    assert command_placement(WorldRequest("shm", threads=1), passes, {}).reason == ""
    assert command_placement(WorldRequest("shm", 3), passes, {}).size == 3, "as asked for"
    assert command_placement(WorldRequest("shm"), outline(), {}).size == 4
    assert command_placement(WorldRequest(), passes, TCP) == Placement("tcp", None)


@pytest.mark.parametrize("environ", [{}, {"COBRE_COMM_BACKEND": "shm"}])
def test_worker_backend_starts_workers(environ):
    found = choose_placement(WorldRequest("auto" if environ else "shm"), environ)
    assert found == Placement("shm", usable_cores(), 1)


@pytest.mark.parametrize(
    ("backend", "workers", "environ", "error", "words"),
    [
        ("local", 2, {}, InitializationFailedError, "local is one process; for 2 workers use shm"),
        ("pigeon", 2, {}, InvalidBackendError, "pigeon"),
        ("auto", 2, {"COBRE_COMM_BACKEND": "pigeon"}, InvalidBackendError, "pigeon"),
        ("mpi", 4, {}, BackendNotAvailableError, "mpiexec -n 4"),
        ("mpi", 4, SRUN, BackendNotAvailableError, "srun started this process without MPI. Use srun --mpi=pmix"),
        ("auto", None, SRUN, BackendNotAvailableError, "srun started 3 tasks"),
        ("auto", 2, SRUN, BackendNotAvailableError, "srun started 3 tasks"),
        ("auto", None, {"COBRE_TCP_RANK": "0"}, MissingConfigurationError, "COBRE_TCP_SIZE"),
        ("auto", None, {"COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "2"}, MissingConfigurationError, "_COORDINATOR"),
        ("tcp", None, {"COBRE_TCP_COORDINATOR": "h"}, MissingConfigurationError, "COBRE_TCP_RANK"),
        ("auto", None, {**TCP, "COBRE_TCP_RANK": "7"}, InitializationFailedError, "COBRE_TCP_RANK must be .* got 7"),
        ("auto", None, {"COBRE_SHM_SIZE": "2"}, MissingConfigurationError, "COBRE_SHM_NAME"),
    ],
)
def test_impossible_placements_raise(monkeypatch, backend, workers, environ, error, words):
    monkeypatch.setattr("cobre.study.placement.installed_backends", lambda: PREFERENCE)
    with pytest.raises(error, match=words) as caught:
        choose_placement(WorldRequest(backend, workers), environ)
    assert isinstance(caught.value, BackendError)


@pytest.mark.parametrize("environ", [{}, SRUN])
def test_missing_mpi4py_is_reported_before_missing_launcher(monkeypatch, environ):
    monkeypatch.setattr("cobre.study.placement.installed_backends", lambda: PREFERENCE[1:])
    with pytest.raises(BackendNotAvailableError, match="mpi4py is not installed") as caught:
        choose_placement(WorldRequest("mpi", 4), environ)
    assert caught.value.library == "mpi4py"


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_numbers_of_workers_are_checked_as_other_arguments(workers):
    with pytest.raises((TypeError, ValueError), match=f"^num_workers: expected .* got {workers!r}$"):
        WorldRequest("auto", workers)


def test_threads_default_to_share_of_cores():
    assert choose_placement(WorldRequest("shm", 2, 5), {}).threads == 5
    assert choose_placement(WorldRequest("shm", 10_000), {}).threads == 1
    assert choose_placement(environ=TCP).threads == 1
    assert choose_placement(WorldRequest(threads=3), TCP).threads == 3


def report_rank(comm, first, second, emit):
    emit(new_event("phase", name=f"{comm.rank} of {comm.size}", pair=[first, second]))
    return comm.rank, comm.size, comm.backend


@pytest.mark.parametrize(
    ("placement", "values"),
    [
        (Placement("local", 1), [(0, 1, "local")]),
        (Placement("shm", 2), [(0, 2, "shm"), (1, 2, "shm")]),
        (Placement("tcp", 2), [(0, 2, "tcp"), (1, 2, "tcp")]),
    ],
)
def test_every_rank_returns_and_only_rank_0_reports(placement, values):
    events = []
    assert call_on_ranks(placement, report_rank, ("a", 2.5), events.append) == values
    assert [(one["name"], one["pair"]) for one in events] == [(f"0 of {placement.size}", ["a", 2.5])]


def timeout(comm, emit):
    import os

    return os.environ.get("COBRE_SHM_TIMEOUT_SECS"), os.environ.get("COBRE_SHM_NAME")


def test_workers_wait_as_the_environment_requests(monkeypatch):
    monkeypatch.setenv("COBRE_SHM_TIMEOUT_SECS", "17")
    monkeypatch.setenv("COBRE_SHM_NAME", "cobre-of-somebody-else")
    ((seconds, name),) = call_on_ranks(Placement("shm", 1), timeout, (), lambda _: None)
    assert float(seconds) == 17
    assert name != "cobre-of-somebody-else"
