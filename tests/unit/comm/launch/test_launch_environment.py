"""Environment variables of launched ranks, and checks of sizes, backends and options."""

import socket

import pytest

from cobre.comm import (
    BackendNotAvailableError,
    InitializationFailedError,
    InvalidBackendError,
    MissingConfigurationError,
    ShmConfig,
)
from cobre.comm.launch.spawning import check_size, rank_environments, rank_variables


@pytest.mark.parametrize("size", [0, -1, 1025, 1.0, "4", None, True, [2]])
def test_invalid_size_raises(size):
    with pytest.raises(InitializationFailedError, match=r"expected a number of ranks from 1 to 1024, got"):
        check_size("shm", size)


def test_numpy_integers_are_sizes():
    numpy = pytest.importorskip("numpy")
    assert check_size("shm", numpy.int64(3)) == 3
    assert check_size("shm", 1024) == 1024


def test_every_rank_gets_its_own_number_in_one_world():
    configs = [ShmConfig.from_env(environ) for environ in rank_variables("shm", 3, {})]
    assert [config.rank for config in configs] == [0, 1, 2]
    assert {config.size for config in configs} == {3}
    assert len({config.name for config in configs}) == 1


def test_two_worlds_never_share_a_name():
    names = {rank_variables("shm", 1, {})[0]["COBRE_SHM_NAME"] for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith("cobre-") and len(name) < 30 for name in names)


def test_options_cannot_change_name_rank_and_size():
    options = {
        "COBRE_SHM_WAIT": "condvar",
        "COBRE_SHM_RANK": "9",
        "COBRE_SHM_SIZE": "99",
        "COBRE_SHM_NAME": "mine",
    }
    config = ShmConfig.from_env(rank_variables("shm", 2, options)[1])
    assert (config.wait, config.rank, config.size) == ("condvar", 1, 2)
    assert config.name != "mine"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"COBRE_SHM_WAIT": "sleep"}, InitializationFailedError),
        ({"COBRE_SHM_TIMEOUT_SECS": "soon"}, MissingConfigurationError),
    ],
)
def test_wrong_option_raises(options, error):
    with pytest.raises(error):
        rank_variables("shm", 2, options)


def test_local_has_one_rank():
    assert rank_variables("local", 1, {}) == [{"COBRE_COMM_BACKEND": "local"}]
    with pytest.raises(InitializationFailedError, match="one rank"):
        rank_variables("local", 2, {})


def test_auto_selects_shared_memory():
    assert rank_variables("auto", 1, {})[0]["COBRE_COMM_BACKEND"] == "shm"


def test_error_lists_backends_that_can_be_launched():
    with pytest.raises(BackendNotAvailableError, match=r"This launcher supports shm, .*local") as caught:
        rank_variables("mpi", 4, {})
    assert "mpiexec -n 4 python script.py" in str(caught.value)


@pytest.mark.parametrize("backend", ["", "carrier-pigeon", None])
def test_unknown_backend_is_named(backend):
    with pytest.raises(InvalidBackendError, match=r"choose one of shm, .*local"):
        rank_variables(backend, 1, {})


def test_ranks_do_not_inherit_world_of_parent(monkeypatch):
    monkeypatch.setenv("COBRE_SHM_RANK", "5")
    monkeypatch.setenv("COBRE_SHM_NAME", "outer")
    monkeypatch.setenv("COBRE_TCP_COORDINATOR", "elsewhere")
    monkeypatch.setenv("COBRE_COMM_BACKEND", "tcp")
    monkeypatch.setenv("MINE", "kept")
    environment = rank_environments("local", 1, {})[0]
    prefixes = ("COBRE_SHM_", "COBRE_TCP_", "COBRE_COMM_")
    assert {name for name in environment if name.startswith(prefixes)} == {"COBRE_COMM_BACKEND"}
    assert environment["COBRE_COMM_BACKEND"] == "local"
    assert environment["MINE"] == "kept"


def test_ranks_have_one_blas_thread_unless_the_user_sets_another_number(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    environment = rank_environments("local", 1, {"MKL_NUM_THREADS": "3"})[0]
    assert environment["OMP_NUM_THREADS"] == "7"
    assert environment["OPENBLAS_NUM_THREADS"] == "1"
    assert environment["MKL_NUM_THREADS"] == "3"
    assert environment["PYTHONUNBUFFERED"] == "1"


def test_tcp_worlds_take_a_free_port():
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port_in_use = listener.getsockname()[1]
        for _ in range(20):
            environment = rank_variables("tcp", 2, {})[0]
            port = int(environment["COBRE_TCP_PORT"])
            assert port != port_in_use
            with socket.socket() as rank_zero:
                rank_zero.bind((environment["COBRE_TCP_COORDINATOR"], port))
