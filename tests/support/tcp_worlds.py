"""Small tcp worlds whose ranks are threads of the test: sockets are real, and the test controls the start."""

import secrets
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np

from cobre.comm import ReduceOp, TcpConfig
from cobre.comm.backends.tcp.communicator import TcpCommunicator

SECRET = "the secret of these tests"
DEADLINE_S = 60
PART_BYTES = 1_000_000  # of each rank in `gather`
HEAD_BYTES = 20_000  # more than the heads and calls of a few collectives take
BYTES_RECEIVED, BYTES_SENT = struct.Struct("128xQ"), struct.Struct("200xQQ")  # of Linux's tcp_info


def new_address():
    """Return a random loopback address, so that no port is in use."""
    return ".".join(map(str, (127, *(secrets.randbelow(254) + 1 for _ in range(3)))))


class TcpWorld:
    """A world whose ranks are threads."""

    def __init__(self, size, **options):
        self.size = size
        self.options = {"secret": SECRET, "connect_timeout_s": 30.0, "timeout_s": 20.0} | options
        self.coordinator = self.options.pop("coordinator", None) or new_address()
        self._executor = ThreadPoolExecutor(max_workers=3 * size + 2)
        self._stack = ExitStack()

    def config(self, rank, **options):
        options = self.options | options
        return TcpConfig(options.pop("coordinator", self.coordinator), rank, options.pop("size", self.size), **options)

    def start(self, rank, **options):
        """Start a rank; return a future of its communicator."""
        return self._executor.submit(self._join, self.config(rank, **options))

    def start_all(self, ranks=None, **options):
        return [self.start(rank, **options) for rank in (range(self.size) if ranks is None else ranks)]

    def everywhere(self, communicators, function):
        """Call the function on all ranks at once; return the values or the exceptions."""
        futures = [self._executor.submit(function, comm) for comm in communicators]
        return [future.exception(DEADLINE_S) or future.result() for future in futures]

    def connect(self, port=29500):
        """Connect to the coordinator as a stranger."""
        return self._stack.enter_context(socket.create_connection((self.coordinator, port), timeout=DEADLINE_S))

    def _join(self, config):
        return self._stack.enter_context(closing(TcpCommunicator(config)))

    def close(self):
        self._stack.close()
        self._executor.shutdown()


@contextmanager
def closing(comm):
    try:
        yield comm
    finally:
        comm.close()


@contextmanager
def tcp_world(size, **options):
    world = TcpWorld(size, **options)
    try:
        yield world
    finally:
        world.close()


def results(futures):
    return [future.result(DEADLINE_S) for future in futures]


def failure(future):
    return future.exception(DEADLINE_S)


def total(comm):
    recv = np.zeros(3)
    comm.allreduce(np.full(3, comm.rank + 1.0), recv, ReduceOp.SUM)
    return recv.tolist()


def gather(comm):
    """Gather a part of each rank; return whether all arrived as they were sent."""
    recv = np.empty(comm.size * PART_BYTES, np.uint8)
    comm.allgatherv(np.full(PART_BYTES, comm.rank, np.uint8), recv, [PART_BYTES] * comm.size)
    comm.barrier()  # so that everything is acknowledged
    return bool((recv == np.repeat(np.arange(comm.size), PART_BYTES)).all())


def data_channel(comm):
    """Return a worker's connection to the coordinator: what it carries is no business of callers, only of tests."""
    return comm._transport._channel


def ring_channels(comm):
    """Return a leader's connections to the hosts before and after it in the ring; as with `data_channel`."""
    return comm._transport.neighbours


def sent_and_received(channel):
    """Return the bytes sent to the other side, each once, and those that came from it.

    Acknowledgements may arrive after the data has been used, so they are not counted.
    """
    info = channel.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    sent, sent_again = BYTES_SENT.unpack_from(info)
    return sent - sent_again, BYTES_RECEIVED.unpack_from(info)[0]


def wait_until_listening(world):
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return world.connect().close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "no process listens"
            time.sleep(0.01)


def wait_for_log(caplog, words):
    deadline = time.monotonic() + DEADLINE_S
    while not any(words in record.getMessage() for record in list(caplog.records)):
        assert time.monotonic() < deadline, f"no rank logged '{words}'"
        time.sleep(0.01)
