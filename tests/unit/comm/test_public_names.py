"""Public names of `cobre.comm`, loaded on first use."""

import subprocess
import sys

import pytest

import cobre.comm
from cobre.comm import SharedRegion

LATER = ["LocalCommunicator", "ShmCommunicator", "TcpCommunicator", "MpiCommunicator"]


@pytest.mark.parametrize("name", LATER)
def test_each_backend_has_a_public_name(name):
    backend = getattr(cobre.comm, name)
    assert backend.__name__ == name and issubclass(backend, cobre.comm.Backend)


def test_contract_has_collectives_and_no_messages_between_two_ranks():
    """List all public members, except those used only by abort, reports and regions."""
    offered = {name for name in dir(cobre.comm.Communicator) if not name.startswith("_")}
    about_itself = {"backend", "rank", "size", "sequence", "state", "recent_calls", "report"}
    ends = {"abort", "check_failures", "close", "give_up"}
    assert offered - about_itself - ends == {"allgatherv", "allreduce", "barrier", "broadcast"}
    shared_memory = {"create_shared_region", "is_leader", "split_local"}
    assert {name for name in dir(cobre.comm.Backend) if not name.startswith("_")} == offered | shared_memory


def test_heap_region_has_a_public_name():
    assert issubclass(cobre.comm.HeapRegion, SharedRegion)


def test_all_names_are_listed_and_exist():
    assert {*LATER, "HeapRegion"} <= set(cobre.comm.__all__) <= set(dir(cobre.comm))
    assert all(hasattr(cobre.comm, name) for name in cobre.comm.__all__)
    assert cobre.comm.__all__ == sorted(cobre.comm.__all__)


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'PigeonCommunicator'"):
        _ = cobre.comm.PigeonCommunicator


def test_backends_are_imported_on_first_use():
    program = (
        "import sys, cobre.comm as c; a = 'cobre.comm.backends.tcp.communicator' in sys.modules; c.TcpCommunicator"
    )
    show = "; print(a, 'cobre.comm.backends.tcp.communicator' in sys.modules, 'mpi4py' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program + show], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["False", "True", "False"]


@pytest.mark.parametrize("name", ["local", "mpi", "shm", "tcp"])
def test_each_backend_has_a_module_of_its_name(name):
    program = f"import sys, cobre.comm.{name} as m; print(sorted(m.__all__), 'mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    title = name.capitalize()
    assert done.stdout == f"['{title}Communicator', '{title}Config'] False\n"


def test_tcp_connects_by_a_config():
    config = cobre.comm.TcpConfig("127.0.0.1", 0, 1)
    with cobre.comm.TcpCommunicator.connect(config) as comm:
        assert (comm.rank, comm.size, comm.backend) == (0, 1, "tcp")
