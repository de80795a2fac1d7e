"""The fault-injecting double: fails at the chosen call, once, and the contract's clauses hold for what follows."""

import os

import numpy as np
import pytest

from cobre.comm import CollectiveFailedError, CommunicatorBrokenError, LocalCommunicator, PeerLostError, launch
from cobre.comm.testing import FaultyCommunicator


def raise_error(error):
    raise error


def run_reductions(comm, calls):
    result = np.zeros(1)
    for value in range(calls):
        comm.allreduce(np.array([float(value)]), result)
    return float(result[0])


def test_fault_breaks_the_communicator_at_the_chosen_call():
    comm = FaultyCommunicator(LocalCommunicator(), {2: lambda: raise_error(OSError("the cable is out"))})
    comm.barrier()
    with pytest.raises(CollectiveFailedError, match=r"barrier call #2 failed: the cable is out"):
        comm.barrier()
    with pytest.raises(CommunicatorBrokenError, match="the cable is out"):
        comm.barrier()
    comm.close()


def test_fault_that_raises_nothing_does_not_stop_the_call():
    faults_run = []
    with FaultyCommunicator(LocalCommunicator(), {1: lambda: faults_run.append("late")}) as comm:
        assert run_reductions(comm, 3) == 2.0
    assert faults_run == ["late"]


def run_until_death(comm, calls):
    """Rank 1 dies right before its third call; the others must raise an error."""
    if comm.rank == 1:
        return run_reductions(FaultyCommunicator(comm, {3: lambda: os._exit(9)}), calls)
    with pytest.raises(PeerLostError, match="rank 1") as caught:
        run_reductions(comm, calls)
    raise caught.value


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_real_rank_dies_at_the_chosen_call(backend):
    with pytest.raises(launch.WorkerError, match=r"rank 1 .*exited with code 9") as caught:
        launch.run(run_until_death, 2, backend, (5,), output=launch.discard)
    assert caught.value.rank == 1
    assert caught.value.exit_code == 9


def test_faults_apply_to_every_collective_but_not_to_split_local():
    faults_run = []
    faults = {number: lambda number=number: faults_run.append(number) for number in range(1, 9)}
    with FaultyCommunicator(LocalCommunicator(), faults) as comm:
        comm.allgatherv(np.ones(2), np.zeros(2), [2])
        comm.allreduce(np.ones(2), np.zeros(2))
        comm.broadcast(np.ones(2))
        comm.barrier()
        with comm.split_local() as node:
            node.barrier()
        with comm.create_shared_region(2, "float64") as region:
            region.fence()
    assert faults_run == [1, 2, 3, 4, 5, 6, 7]


def test_fault_in_a_fence_breaks_the_communicator_of_the_region():
    comm = FaultyCommunicator(LocalCommunicator(), {2: lambda: raise_error(OSError("the cable is out"))})
    region = comm.create_shared_region(2, "float64")
    with pytest.raises(CollectiveFailedError, match=r"fence call #2 failed: the cable is out"):
        region.fence()
    region.close()
    assert comm.state == "broken"
    comm.close()
