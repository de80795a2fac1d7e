"""The tcp backend: the contract's hooks and errors, on top of transport and collectives."""

import os
import weakref
from collections.abc import Sequence
from functools import cache, partial
from typing import Self

from cobre._native import CallGuard, CollectiveFailure, JoinFailure, ShmRegion, ShmSegment
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.backends.shm import NativeRegionBackend, ShmCommunicator, weak_callback
from cobre.comm.backends.tcp.collectives import HierarchicalCollectives, StarCollectives
from cobre.comm.backends.tcp.liveness import (
    ControlLink,
    CoordinatorMonitor,
    Progress,
    WorkerMonitor,
    WorldFailedError,
    error_from_record,
)
from cobre.comm.backends.tcp.node_group import (
    NO_RING,
    NodeGroup,
    awaited_ranks,
    failure_record_of,
    find_nodes,
    join_memory,
    wake_node,
)
from cobre.comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre.comm.backends.tcp.rendezvous.connector import Connector
from cobre.comm.backends.tcp.rendezvous.handshake import load_secret
from cobre.comm.backends.tcp.rendezvous.listener import client_context, server_context
from cobre.comm.backends.tcp.rendezvous.ring import UnreachableError, connect_ring
from cobre.comm.backends.tcp.transport.channel import (
    LinkLostError,
    configure_control_socket,
    configure_data_socket,
    configure_ring_socket,
    make_channel,
)
from cobre.comm.backends.tcp.transport.coordinator import CoordinatorTransport
from cobre.comm.backends.tcp.transport.ring import Ring
from cobre.comm.backends.tcp.transport.star import StarTransport
from cobre.comm.backends.tcp.transport.waiting import OnWait, WaitPolicy, spin_wait_for
from cobre.comm.backends.tcp.transport.worker import WorkerTransport
from cobre.comm.backends.tcp.wire.messages import RING_OFFER_BYTES, FailureRecord, Link, RingOffer
from cobre.comm.backends.tcp.wire.protocol import ProtocolError, call_header
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import CollectiveFailedError, InitializationFailedError, Peer
from cobre.comm.shared_memory import SharedRegion
from cobre.comm.types import Dtype, Operation

# From a configuration to a connected transport: rendezvous, socket options, channels, liveness monitor, ring.


def connect_transport(config: TcpConfig, secret: bytes, on_wait: OnWait) -> StarTransport:
    """Join the world that the configuration describes; blocks until all ranks have connected.

    secret: the key from `load_secret`. on_wait: called during long waits in later calls (see `WaitPolicy`). Raises
    `InitializationFailedError` if ranks are still missing after `connect_timeout_s`, and `MissingConfigurationError` if
    a secret is required and there is none.
    """
    wait_policy = WaitPolicy(spin_wait_for(config.size), config.operation_timeout_s, on_wait)
    if config.rank == 0:
        return _connect_coordinator(config, secret, wait_policy)
    return _connect_worker(config, secret, wait_policy)


def _connect_coordinator(config: TcpConfig, secret: bytes, wait_policy: WaitPolicy) -> CoordinatorTransport:
    workers = Acceptor(config, secret, server_context(config)).accept_all() if config.size > 1 else {}
    channels, links = {}, {}
    for rank, worker in workers.items():
        configure_data_socket(worker.links[Link.DATA], config.timeout_s)
        configure_control_socket(worker.links[Link.CONTROL], config.timeout_s)
        channels[rank] = make_channel(worker.links[Link.DATA], worker.peer, wait_policy.spin_wait)
        links[rank] = ControlLink(worker.links[Link.CONTROL], worker.peer)
    # Last: it starts the thread, and from now on a lost rank is a failure of the world and not of the rendezvous.
    monitor = CoordinatorMonitor(links, Progress(), config.timeout_s)
    return CoordinatorTransport(channels, Peer.of_this_process(0), monitor, wait_policy)


def _connect_worker(config: TcpConfig, secret: bytes, wait_policy: WaitPolicy) -> WorkerTransport:
    connection = Connector(config, secret, client_context(config)).connect()
    configure_data_socket(connection.links[Link.DATA], config.timeout_s)
    configure_control_socket(connection.links[Link.CONTROL], config.timeout_s)
    channel = make_channel(connection.links[Link.DATA], connection.coordinator, wait_policy.spin_wait)
    link = ControlLink(connection.links[Link.CONTROL], connection.coordinator)
    monitor = WorkerMonitor({0: link}, Progress(), config.timeout_s)
    return WorkerTransport(config.rank, config.size, channel, monitor, wait_policy)


def join_ring(
    transport: StarTransport, config: TcpConfig, secret: bytes, nodes: Sequence[Sequence[int]]
) -> Ring | None:
    """Connect the leader of this node with its neighbours; None, with a warning, if not all nodes can be connected.

    Part of the call in which ranks find their nodes (number 0). A collective of the leaders.
    """
    leaders = [ranks[0] for ranks in nodes]
    position = leaders.index(config.rank)
    sizes = [RING_OFFER_BYTES if rank in leaders else 0 for rank in range(config.size)]

    def exchange(offer: RingOffer) -> list[RingOffer]:
        header = call_header(0, Operation.JOIN, inline_bytes=RING_OFFER_BYTES)
        parts = transport.gather_inline(0, header, memoryview(offer.pack()), sizes)
        return [RingOffer.parse(bytes(parts[leader])) for leader in leaders]

    try:
        sockets = connect_ring(config, secret, position, transport.local_address(leaders[-1]), exchange)
    except UnreachableError as error:
        if config.rank == 0:
            logger.warning(
                "large payloads go through rank 0, not from host to host: %s. Open the ports between all hosts "
                "(COBRE_TCP_RING_PORTS limits them), or set COBRE_TCP_RING_BYTES=0",
                error,
            )
        return None
    channels = []
    for sock, peer in ((sockets.left, sockets.left_peer), (sockets.right, sockets.right_peer)):
        configure_ring_socket(sock, config.timeout_s)
        channels.append(make_channel(sock, peer, transport.wait_policy.spin_wait))
    transport.neighbours = channels
    return Ring(transport, channels[0], channels[1], nodes, position)


_transports: "weakref.WeakSet[StarTransport]" = weakref.WeakSet()


class TcpCommunicator(NativeRegionBackend):
    """A rank of a world that is connected by TCP. Ranks of one node share memory; the lowest of them is its leader."""

    backend = "tcp"

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config.rank, config.size)
        self._config = config
        self._node: NodeGroup | None = None
        self._failure: FailureRecord | None = None
        # First: an unusable secret is reported before anything is opened, and it may come from a pipe.
        secret = load_secret(config)
        self._transport = connect_transport(config, secret, self._log_wait)
        self._transport.progress.label = partial(_last_label, self._guard)
        _close_in_children(self._transport)
        # A world of one has no connections, but numbers its calls and fails like any other.
        self._collectives = (
            self._choose_collectives(secret) if config.size > 1 else StarCollectives(self._transport, self._guard, 0, 1)
        )
        self._bind_collectives(self._collectives)

    @classmethod
    def connect(cls, config: TcpConfig) -> Self:
        """Join the world that the config describes, as `TcpCommunicator(config)` does; the specification's name."""
        return cls(config)

    @property
    def is_leader(self) -> bool:
        """The lowest rank of those that share memory; every rank where none is shared."""
        return self._node is None or self._node.is_leader

    def _choose_collectives(self, secret: bytes) -> StarCollectives | HierarchicalCollectives:
        """Find out which ranks share memory, connect their hosts, and choose the collectives accordingly."""
        try:
            # First who shares memory, then the memory itself, and only then may the transport rely on leaders: until
            # all ranks of a node have joined its memory, each of them needs its own data connection.
            nodes, memory = find_nodes(self._transport, self._config)
            node = None if memory is None else self._join_node(nodes.node_of(self._rank), memory)
            if node is not None:
                self._transport.use_leaders(nodes.groups)
            ring = None
            if nodes.ring_threshold_bytes != NO_RING and self.is_leader:
                ring = join_ring(self._transport, self._config, secret, nodes.groups)
            self._transport.end(0)
        except BaseException as error:
            self._leave_rendezvous(error)
            raise
        if node is None:
            return StarCollectives(
                self._transport, self._guard, self._rank, self._size, ring, nodes.ring_threshold_bytes
            )
        return HierarchicalCollectives(self._transport, node, nodes, self._guard, self._rank, self._size, ring)

    def _join_node(self, ranks: Sequence[int], memory: ShmSegment) -> NodeGroup:
        on_wait = weak_callback(self._log_wait_in_node)
        self._node = node = NodeGroup(ranks, memory, self._config, self._guard, on_wait)
        self._transport.monitor.on_failure = partial(wake_node, node, self._transport.progress)
        join_memory(self._transport, self._config, node.shm)
        return node

    def _leave_rendezvous(self, error: BaseException) -> None:
        """Close, and raise a startup error: a rank was lost after all had connected, before nodes were known."""
        translated = self._translate(error, Operation.JOIN)
        if isinstance(error, JoinFailure):  # detected only here; the others would name this rank without a reason
            self._transport.monitor.abort(f"rank {self._rank}: {error}", Peer.of_this_process(self._rank))
        self.close()
        if isinstance(error, JoinFailure) or translated is not error:
            raise InitializationFailedError("tcp", getattr(translated, "message", str(translated))) from error

    def _log_wait_in_node(self, seconds: float, missing: list[str]) -> None:
        self._log_wait(seconds, awaited_ranks(self._transport, missing))

    def _create_shared_region(self, count: int, dtype: Dtype) -> SharedRegion:
        return self._collectives.create_region(self, count, dtype)

    def _fence_region(self, region: ShmRegion) -> None:
        assert isinstance(self._collectives, HierarchicalCollectives)  # noqa: S101 - only they make such regions
        self._collectives.fence(region)

    def _split_local(self) -> LocalCommunicator | ShmCommunicator:
        return self._collectives.split_local()

    def _close(self) -> None:
        # The monitor's thread writes failure records into the node's memory: it must end before that is unmapped.
        self._transport.close()
        if self._node is not None:
            self._node.close()

    def _abort(self, reason: str) -> None:
        failure = self._transport.monitor.abort(reason, Peer.of_this_process(self._rank))
        if self._node is not None:
            self._node.abort(self._failure or failure)

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        try:
            if isinstance(error, LinkLostError):
                return self._failed(self._transport.diagnose_disconnect(error), operation)
        except WorldFailedError as recorded:  # a failure record arrived while `diagnose_disconnect` was waiting for one
            error = recorded
        if isinstance(error, WorldFailedError):
            return self._failed(error.failure, operation)
        if isinstance(error, CollectiveFailure):
            return self._failed(failure_record_of(error, self._transport), operation)
        if isinstance(error, ProtocolError):
            return CollectiveFailedError(operation.title, 0, str(error), self.sequence)
        return super()._translate(error, operation)

    def _failed(self, failure: FailureRecord, operation: Operation) -> CollectiveFailedError:
        self._failure = failure
        return error_from_record(failure, operation, self.sequence)

    def __repr__(self) -> str:
        return (
            f"{super().__repr__()[:-1]}, {self._config.coordinator or f'port {self._config.port}'}, pid {os.getpid()}>"
        )


def _last_label(guard: CallGuard) -> str:
    """Return the label of the last call; looked up for heartbeats only, so that calls need not pass it along."""
    calls = guard.recent()
    return calls[-1][3] if calls else ""


def _close_in_children(transport: StarTransport) -> None:
    """Close the connections in forked children: while a child holds copies, no peer notices this process's death."""
    _watch_forks()
    _transports.add(transport)


@cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_close_inherited)


def _close_inherited() -> None:
    for transport in list(_transports):
        transport.drop()
    _transports.clear()
