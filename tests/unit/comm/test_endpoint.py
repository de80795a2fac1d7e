"""Errors of calls that cannot be made now, and conversions of arguments."""

import array
import inspect
import threading

import numpy as np
import pytest

from cobre.comm import (
    AllocationFailedError,
    CollectiveFailedError,
    Communicator,
    CommunicatorBrokenError,
    CommunicatorBusyError,
    CommunicatorClosedError,
    InvalidBufferSizeError,
    InvalidRootError,
    LocalCommunicator,
    LocalConfig,
    UnsupportedBufferError,
    create_communicator,
)


@pytest.fixture
def comm():
    with create_communicator(LocalConfig()) as comm:
        yield comm


def test_second_thread_raises_busy_error_not_closed_error(comm):
    """The first call may end between the rejection and the formatting of its message."""
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


def test_busy_error_is_raised_even_if_the_other_call_has_ended(comm):
    with pytest.raises(CommunicatorBusyError, match="another thread was inside a call"):
        comm._raise_unusable()


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_error_with_failing_str_is_still_raised(comm, caplog):
    caplog.set_level("INFO", "cobre.comm")
    with pytest.raises(UnprintableError), comm:
        raise UnprintableError
    assert comm.state == "closed" and "this rank called abort: UnprintableError" in caplog.text


def test_non_array_buffers_are_accepted(comm):
    """Cover the slow path: the guard accepts arrays only, validation converts the rest."""
    send, recv = array.array("d", [1.0, 2.0]), array.array("d", [0.0, 0.0])
    comm.allreduce(send, recv)
    assert recv == send
    with comm.create_shared_region(2, np.float64) as region:
        comm.allreduce(send, region)
        comm.broadcast(region)
        assert region.as_array().tolist() == [1.0, 2.0]


def test_masked_array_raises(comm):
    masked = np.ma.masked_array(np.ones(2), [True, False])
    with pytest.raises(UnsupportedBufferError, match="masked array"):
        comm.allreduce(masked, np.zeros(2))


@pytest.mark.parametrize("dtype", [None, "3f8"])
def test_region_dtype_is_scalar(comm, dtype):
    with pytest.raises(UnsupportedBufferError, match="the dtype of one element"):
        comm.create_shared_region(1, dtype)


@pytest.mark.parametrize("count,error", [(1 << 61, InvalidBufferSizeError), (1 << 55, AllocationFailedError)])
def test_region_larger_than_memory_raises(comm, count, error):
    with pytest.raises(error, match=str(8 * count)):
        comm.create_shared_region(count, np.float64)
    comm.barrier()


def test_region_has_a_representation(comm):
    with comm.create_shared_region(3, np.int8) as region:
        assert repr(region) == "<HeapRegion 3 x int8, open>"
    assert repr(region) == "<HeapRegion 3 x int8, closed>"


def test_closed_communicator_raises(comm):
    comm.close()
    with pytest.raises(CommunicatorClosedError, match="this communicator is closed"):
        comm.barrier()


class Barriers(LocalCommunicator):
    """A communicator with the given hook as barrier."""

    def __init__(self, hook):
        super().__init__()
        self._barrier = hook


def test_barrier_that_raises_breaks_the_communicator():
    """The native path of `barrier` ends a call as Python does: numbered, translated, broken, with its cause."""

    def fail():
        raise OSError("the wire was cut")

    comm = Barriers(fail)
    with pytest.raises(CollectiveFailedError, match="the wire was cut") as caught:
        comm.barrier(label="here")
    assert isinstance(caught.value.__cause__, OSError) and caught.value.operation == "barrier"
    assert comm.state == "broken" and comm.recent_calls()[-1].label == "here"
    with pytest.raises(CommunicatorBrokenError):
        comm.barrier()
    comm.close()
    with pytest.raises(CommunicatorClosedError):
        comm.barrier()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_barrier_does_not_translate_unknown_errors(error):
    def fail():
        raise error("as it is")

    comm = Barriers(fail)
    with pytest.raises(error, match="as it is"):
        comm.barrier()
    assert comm.state == "broken"


def test_barrier_of_mpi4py_replaces_hook(comm):
    calls = []
    comm._guard.bind_barrier(lambda: calls.append(comm.state))
    comm.barrier()
    assert calls == ["busy"] and comm.sequence == 1 and comm.state == "open"


def test_barrier_before_constructor_raises_attribute_error():
    """Native code reads the guard at its place in the object, which is empty until `Endpoint.__init__` has run."""
    with pytest.raises(AttributeError):
        LocalCommunicator.__new__(LocalCommunicator).barrier()


def test_barrier_without_guard_raises_attribute_error(comm):
    """The slot may hold an object other than a guard."""
    guard = comm._guard
    comm._guard = "no guard"
    try:
        with pytest.raises(AttributeError):
            comm.barrier()
    finally:
        comm._guard = guard
    comm.barrier()


def test_barrier_is_a_method_like_others(comm):
    """Check its signature, docstring, errors, and subclasses that override it."""
    assert str(inspect.signature(comm.barrier)) == "(*, label: str = '') -> None"
    assert inspect.isroutine(Communicator.barrier) and "every rank" in Communicator.barrier.__doc__
    with pytest.raises(TypeError, match="positional argument"):
        comm.barrier("label")
    with pytest.raises(TypeError, match="unexpected keyword"):
        comm.barrier(name="label")
    with pytest.raises(AttributeError):
        Communicator.barrier(object())
    comm.barrier(label=7)  # any object is accepted as label: labels are only displayed
    assert comm.recent_calls()[-1].label == "7"
    Communicator.barrier(comm, **{"".join(["la", "bel"]): "built at run time"})
    assert comm.recent_calls()[-1].label == "built at run time"

    class Counting(LocalCommunicator):
        count = 0

        def barrier(self, *, label=""):
            self.count += 1
            super().barrier(label=label)

    with Counting() as counting:
        counting.barrier()
        assert counting.count == counting.sequence == 1


def test_fence_that_raises_breaks_the_communicator(comm):
    region = comm.create_shared_region(1, np.float64)
    region._fence = lambda: (_ for _ in ()).throw(OSError("no fence"))
    with pytest.raises(CollectiveFailedError, match="no fence") as caught:
        region.fence()
    assert caught.value.operation == "fence" and comm.state == "broken"
    with pytest.raises(CommunicatorBrokenError):
        region.fence()
