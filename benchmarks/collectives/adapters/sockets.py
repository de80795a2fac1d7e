"""Limit of loopback: the bytes that a star must transfer, over plain TCP sockets, all at once.

No protocol, no checks, and no waiting for data before it is relayed: rank 0 sends whatever is in its memory.
"""

import select
import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np

from collectives.adapters.base import Adapter, Array, Call

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 60.0


class Flow:
    """Payload of one connection in one call, both ways."""

    def __init__(self, sock: socket.socket, outgoing: Sequence[Array], incoming: Sequence[Array]) -> None:
        self.sock = sock
        self._whole = [view_of(array) for array in outgoing], [view_of(array) for array in incoming]
        self.restart()

    def restart(self) -> None:
        """Queue the same bytes again."""
        self._out, self._in = (deque(view for view in views if len(view)) for views in self._whole)

    @property
    def interest(self) -> int:
        """Poll events to wait for; 0 when done."""
        return (select.POLLOUT if self._out else 0) | (select.POLLIN if self._in else 0)

    def advance(self) -> int:
        """Transfer what the socket takes and has; return the number of bytes."""
        return self._send() + self._receive()

    def _send(self) -> int:
        if not self._out:
            return 0
        try:
            return drop(self._out, self.sock.send(self._out[0]))
        except BlockingIOError:
            return 0

    def _receive(self) -> int:
        if not self._in:
            return 0
        try:
            received = self.sock.recv_into(self._in[0])
        except BlockingIOError:
            return 0
        if not received:
            raise ConnectionError("the other rank has gone")
        return drop(self._in, received)


class SocketsAdapter(Adapter):
    """Socket copies in place of collectives; another adapter only keeps the ranks in step.

    links: the connections by the rank at their other end: all workers for rank 0, rank 0 for a worker.
    """

    communicates = False

    def __init__(self, partner: Adapter, links: Mapping[int, socket.socket]) -> None:
        super().__init__(partner.rank, partner.size)
        self._partner = partner
        self._links = links

    def synchronise(self) -> None:
        """Call the partner's barrier."""
        self._partner.synchronise()

    def bind_barrier(self) -> Call:
        """Send one element to rank 0 and one back."""
        return self.bind_allreduce(np.zeros(1), np.zeros(1))

    def bind_allreduce(self, send: Array, recv: Array) -> Call:
        """Send every worker's array to rank 0 and the result back."""
        if self.rank == 0:
            return self._bind({peer: ([send], [np.empty_like(recv)]) for peer in self._links})
        return self._bind({0: ([send], [recv])})

    def bind_allgatherv(self, send: Array, recv: Array, counts: tuple[int, ...]) -> Call:
        """Send every worker's part to rank 0 and all other parts back."""
        parts = np.split(recv, np.cumsum(counts)[:-1])
        if self.rank == 0:
            parts[0] = send
            return self._bind({peer: (all_but(parts, peer), [parts[peer]]) for peer in self._links})
        return self._bind({0: ([send], all_but(parts, self.rank))})

    def bind_broadcast(self, buffer: Array) -> Call:
        """Send the whole buffer from rank 0 to every worker."""
        if self.rank == 0:
            return self._bind({peer: ([buffer], []) for peer in self._links})
        return self._bind({0: ([], [buffer])})

    def _bind(self, cargo: Mapping[int, tuple[Sequence[Array], Sequence[Array]]]) -> Call:
        return partial(exchange, [Flow(self._links[peer], *both_ways) for peer, both_ways in cargo.items()])


@contextmanager
def connect_star(partner: Adapter) -> Iterator[SocketsAdapter]:
    """Connect all workers with rank 0, which tells them its port through the partner."""
    with ExitStack() as stack:
        port = np.zeros(1)
        if partner.rank == 0:
            listener = stack.enter_context(socket.create_server((LOOPBACK, 0), backlog=partner.size))
            port[0] = listener.getsockname()[1]
        partner.bind_broadcast(port)()
        links = accept_all(listener, partner.size) if partner.rank == 0 else connect(partner.rank, int(port[0]))
        for link in links.values():
            stack.enter_context(link)
            make_ready(link)
        yield SocketsAdapter(partner, links)
        partner.synchronise()


def accept_all(listener: socket.socket, size: int) -> dict[int, socket.socket]:
    """Accept all workers; each sends its rank first."""
    listener.settimeout(TIMEOUT_S)
    links = {}
    for _ in range(size - 1):
        link, _ = listener.accept()
        link.settimeout(TIMEOUT_S)
        links[link.recv(1)[0]] = link
    return links


def connect(rank: int, port: int) -> dict[int, socket.socket]:
    """Connect a worker to rank 0; return its only connection, by rank."""
    link = socket.create_connection((LOOPBACK, port), TIMEOUT_S)
    link.sendall(bytes([rank]))
    return {0: link}


def make_ready(link: socket.socket) -> None:
    """Disable delays and blocking; buffer sizes are the kernel's, since fixed ones of 1 and 4 MiB were slower."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setblocking(False)


def exchange(flows: Sequence[Flow]) -> None:
    """Transfer everything on all connections, in the order in which sockets are ready."""
    for flow in flows:
        flow.restart()
    while active := [flow for flow in flows if flow.interest]:
        if not sum([flow.advance() for flow in active]):
            wait(active)


def wait(flows: Sequence[Flow]) -> None:
    """Wait until a socket is ready."""
    poller = select.poll()
    for flow in flows:
        if flow.interest:
            poller.register(flow.sock, flow.interest)
    if not poller.poll(TIMEOUT_S * 1000):
        raise TimeoutError(f"nothing has moved for {TIMEOUT_S:.0f} s")


def drop(views: deque[memoryview], nbytes: int) -> int:
    """Remove the transferred bytes from the first view."""
    first = views.popleft()
    if nbytes < len(first):
        views.appendleft(first[nbytes:])
    return nbytes


def all_but(parts: Sequence[Array], rank: int) -> list[Array]:
    """Return the parts of the other ranks, in rank order."""
    return [part for other, part in enumerate(parts) if other != rank]


def view_of(array: Array) -> memoryview:
    """Return the bytes of an array."""
    return array.data.cast("B")
