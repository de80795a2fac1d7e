"""Errors of calls that cannot be made now, and conversions of arguments."""

import array
import threading

import numpy as np
import pytest

from cobre.comm import (
    AllocationFailedError,
    CommunicatorBusyError,
    CommunicatorClosedError,
    InvalidBufferSizeError,
    InvalidRootError,
    LocalConfig,
    UnsupportedBufferError,
    create_communicator,
)


@pytest.fixture
def comm():
    with create_communicator(LocalConfig()) as comm:
        yield comm


def test_a_second_thread_gets_busy_and_never_closed(comm):
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


def test_a_busy_error_after_the_other_call_has_ended(comm):
    with pytest.raises(CommunicatorBusyError, match="another thread was inside a call"):
        comm._raise_unusable()


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_an_error_that_cannot_be_printed_is_still_an_error(comm, caplog):
    caplog.set_level("INFO", "cobre.comm")
    with pytest.raises(UnspeakableError), comm:
        raise UnspeakableError
    assert comm.state == "closed" and "this rank called abort: UnspeakableError" in caplog.text


def test_other_buffers_than_arrays_are_taken(comm):
    """The guard takes arrays alone; the rest is checked and converted first."""
    send, recv = array.array("d", [1.0, 2.0]), array.array("d", [0.0, 0.0])
    comm.allreduce(send, recv)
    assert recv == send
    with comm.create_shared_region(2, np.float64) as region:
        comm.allreduce(send, region)
        comm.broadcast(region)
        assert region.as_array().tolist() == [1.0, 2.0]


def test_a_masked_array_is_refused(comm):
    masked = np.ma.masked_array(np.ones(2), [True, False])
    with pytest.raises(UnsupportedBufferError, match="masked array"):
        comm.allreduce(masked, np.zeros(2))


@pytest.mark.parametrize("dtype", [None, "3f8"])
def test_a_region_has_elements_of_one_number(comm, dtype):
    with pytest.raises(UnsupportedBufferError, match="the dtype of one element"):
        comm.create_shared_region(1, dtype)


@pytest.mark.parametrize("count,error", [(1 << 61, InvalidBufferSizeError), (1 << 55, AllocationFailedError)])
def test_a_region_that_no_machine_has_room_for(comm, count, error):
    with pytest.raises(error, match=str(8 * count)):
        comm.create_shared_region(count, np.float64)
    comm.barrier()


def test_a_region_says_what_it_is(comm):
    with comm.create_shared_region(3, np.int8) as region:
        assert repr(region) == "<HeapRegion 3 x int8, open>"
    assert repr(region) == "<HeapRegion 3 x int8, closed>"


def test_a_closed_communicator_raises(comm):
    comm.close()
    with pytest.raises(CommunicatorClosedError, match="this communicator is closed"):
        comm.barrier()
