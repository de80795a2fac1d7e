"""From a configuration to a connected transport: rendezvous, socket options, channels, liveness monitor, ring."""

from collections.abc import Sequence

from cobre.comm.backends.tcp.liveness.control import ControlLink
from cobre.comm.backends.tcp.liveness.coordinator_monitor import CoordinatorMonitor
from cobre.comm.backends.tcp.liveness.progress import Progress
from cobre.comm.backends.tcp.liveness.worker_monitor import WorkerMonitor
from cobre.comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre.comm.backends.tcp.rendezvous.connector import Connector
from cobre.comm.backends.tcp.rendezvous.ring import UnreachableError, connect_ring
from cobre.comm.backends.tcp.rendezvous.tls import client_context, server_context
from cobre.comm.backends.tcp.transport.base import Transport
from cobre.comm.backends.tcp.transport.channel import make_channel
from cobre.comm.backends.tcp.transport.coordinator import CoordinatorTransport
from cobre.comm.backends.tcp.transport.ring import Ring
from cobre.comm.backends.tcp.transport.socket_options import prepare_control, prepare_data, prepare_ring
from cobre.comm.backends.tcp.transport.spin_wait import spin_wait_for
from cobre.comm.backends.tcp.transport.waiting import OnWait, WaitPolicy
from cobre.comm.backends.tcp.transport.worker import WorkerTransport
from cobre.comm.backends.tcp.wire.calls import call_header
from cobre.comm.backends.tcp.wire.handshake_messages import RING_OFFER_BYTES, Link, RingOffer
from cobre.comm.config import TcpConfig
from cobre.comm.endpoint import logger
from cobre.comm.errors import Peer
from cobre.comm.types import Operation


def connect(config: TcpConfig, secret: bytes, on_wait: OnWait) -> Transport:
    """Join the world that the configuration describes; blocks until all ranks have connected.

    secret: by `load_secret`. on_wait: called during long waits in later calls (see `WaitPolicy`). Raises
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
        prepare_data(worker.links[Link.DATA], config.timeout_s)
        prepare_control(worker.links[Link.CONTROL], config.timeout_s)
        channels[rank] = make_channel(worker.links[Link.DATA], worker.peer, wait_policy.spin_wait)
        links[rank] = ControlLink(worker.links[Link.CONTROL], worker.peer)
    # Last: it starts the thread, and from now on a lost rank is a failure of the world and not of the rendezvous.
    monitor = CoordinatorMonitor(links, Progress(), config.timeout_s)
    return CoordinatorTransport(channels, Peer.of_this_process(0), monitor, wait_policy)


def _connect_worker(config: TcpConfig, secret: bytes, wait_policy: WaitPolicy) -> WorkerTransport:
    connection = Connector(config, secret, client_context(config)).connect()
    prepare_data(connection.links[Link.DATA], config.timeout_s)
    prepare_control(connection.links[Link.CONTROL], config.timeout_s)
    channel = make_channel(connection.links[Link.DATA], connection.coordinator, wait_policy.spin_wait)
    link = ControlLink(connection.links[Link.CONTROL], connection.coordinator)
    monitor = WorkerMonitor({0: link}, Progress(), config.timeout_s)
    return WorkerTransport(config.rank, config.size, channel, monitor, wait_policy)


def join_ring(transport: Transport, config: TcpConfig, secret: bytes, nodes: Sequence[Sequence[int]]) -> Ring | None:
    """Connect the leader of this node with its neighbours; None, with a warning, if not all nodes can be connected.

    Part of the call in which ranks find their nodes (number 0). A collective of the leaders.
    """
    leaders = [ranks[0] for ranks in nodes]
    position = leaders.index(config.rank)
    sizes = [RING_OFFER_BYTES if rank in leaders else 0 for rank in range(config.size)]

    def exchange(own: RingOffer) -> list[RingOffer]:
        header = call_header(0, Operation.JOIN, inline_bytes=RING_OFFER_BYTES)
        parts = transport.gather(0, header, memoryview(own.pack()), sizes)
        return [RingOffer.parse(bytes(parts[leader])) for leader in leaders]

    try:
        found = connect_ring(config, secret, position, transport.local_address(leaders[-1]), exchange)
    except UnreachableError as error:
        if config.rank == 0:
            logger.warning(
                "large payloads go through rank 0, not from host to host: %s. Open the ports between all hosts "
                "(COBRE_TCP_RING_PORTS limits them), or set COBRE_TCP_RING_BYTES=0",
                error,
            )
        return None
    channels = []
    for sock, peer in ((found.left, found.left_peer), (found.right, found.right_peer)):
        prepare_ring(sock, config.timeout_s)
        channels.append(make_channel(sock, peer, transport.wait_policy.spin_wait))
    transport.neighbours = channels
    return Ring(transport, channels[0], channels[1], nodes, position)
