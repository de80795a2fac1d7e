"""What a call is told that cannot be made now."""

import threading

import numpy as np
import pytest

from cobre.comm import (
    CommunicatorBusyError,
    CommunicatorClosedError,
    InvalidRootError,
    LocalConfig,
    create_communicator,
)


@pytest.fixture
def comm():
    with create_communicator(LocalConfig()) as comm:
        yield comm


def test_a_second_thread_is_never_told_that_the_communicator_is_closed(comm):
    """The first thread's call may end between the refusal and the words for it."""
    enough = threading.Event()

    def stay_busy():
        data = np.zeros(1 << 16)
        while not enough.is_set():
            comm.allgatherv(data, np.zeros_like(data), [data.size])

    worker = threading.Thread(target=stay_busy)
    worker.start()
    try:
        for _ in range(20_000):
            with pytest.raises((CommunicatorBusyError, InvalidRootError)):
                comm.broadcast(np.zeros(1), root=1)
    finally:
        enough.set()
        worker.join(60)


def test_a_refusal_whose_cause_has_gone_says_so(comm):
    with pytest.raises(CommunicatorBusyError, match="another thread was inside a call"):
        comm._refuse()


def test_a_closed_communicator_is_closed(comm):
    comm.close()
    with pytest.raises(CommunicatorClosedError, match="this communicator is closed"):
        comm.barrier()
