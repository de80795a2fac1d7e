"""Closing from another thread during a call: the call and those of the other ranks raise an error."""

import threading
from pathlib import Path

import numpy as np
import pytest
from processes import leaving_nothing_behind, wait_until

from cobre.comm import CommError, PeerLostError, launch

CALLS = {
    "barrier": lambda comm: comm.barrier(),
    "allgatherv": lambda comm: comm.allgatherv(np.zeros(9), np.zeros(18), [9, 9]),
    "create_shared_region": lambda comm: comm.create_shared_region(9, np.float64),
}


def close_or_wait(comm, call, folder):
    """Rank 0 closes while its second thread waits in a call; rank 1 makes that call afterwards."""
    closed = Path(folder) / "closed"
    if comm.rank == 0:
        errors = []
        waiting = threading.Thread(target=lambda: errors.append(error_of(comm, call)), daemon=True)
        waiting.start()
        wait_until(lambda: comm.state == "busy", "the call waits")
        comm.close()
        waiting.join()
        closed.touch()
        return *errors, comm.state
    wait_until(closed.exists, "rank 0 has closed")
    return error_of(comm, call), comm.state


def error_of(comm, call):
    try:
        CALLS[call](comm)
    except CommError as error:
        return error
    return None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_waiting_call_raises_and_other_ranks_name_leaver(backend, call, tmp_path):
    with leaving_nothing_behind():
        outcomes = launch.run(close_or_wait, 2, backend, args=(call, str(tmp_path)))
    for error, _ in outcomes:
        assert isinstance(error, PeerLostError) and [peer.rank for peer in error.peers] == [0]
    assert [state for _, state in outcomes] == ["closed", "broken"]
