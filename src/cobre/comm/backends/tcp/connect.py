"""From a configuration to a connected world."""

from cobre.comm.backends.tcp.channel import make_channel
from cobre.comm.backends.tcp.control import ControlLink
from cobre.comm.backends.tcp.coordinator import CoordinatorWorld
from cobre.comm.backends.tcp.protocol import Link
from cobre.comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre.comm.backends.tcp.rendezvous.connector import Connector
from cobre.comm.backends.tcp.rendezvous.handshake import this_process
from cobre.comm.backends.tcp.rendezvous.secret import load_secret
from cobre.comm.backends.tcp.rendezvous.tls import client_context, server_context
from cobre.comm.backends.tcp.socket_options import prepare_control, prepare_data
from cobre.comm.backends.tcp.spinning import spinner_for
from cobre.comm.backends.tcp.waiting import OnWait, Patience
from cobre.comm.backends.tcp.watch import CoordinatorWatch, Progress, WorkerWatch
from cobre.comm.backends.tcp.worker import WorkerWorld
from cobre.comm.backends.tcp.world import World
from cobre.comm.config import TcpConfig


def connect(config: TcpConfig, on_wait: OnWait) -> World:
    """Join the world that the configuration describes."""
    secret = load_secret(config)
    patience = Patience(spinner_for(config.size), config.operation_timeout_s, on_wait)
    if config.rank == 0:
        return _connect_coordinator(config, secret, patience)
    return _connect_worker(config, secret, patience)


def _connect_coordinator(config: TcpConfig, secret: bytes, patience: Patience) -> CoordinatorWorld:
    workers = Acceptor(config, secret, server_context(config)).accept_all() if config.size > 1 else {}
    channels, links = {}, {}
    for rank, worker in workers.items():
        prepare_data(worker.links[Link.DATA], config.timeout_s)
        prepare_control(worker.links[Link.CONTROL], config.timeout_s)
        channels[rank] = make_channel(worker.links[Link.DATA], worker.peer, patience.spinner)
        links[rank] = ControlLink(worker.links[Link.CONTROL], worker.peer)
    watch = CoordinatorWatch(links, Progress(), config.timeout_s)
    return CoordinatorWorld(channels, this_process(0), watch, patience)


def _connect_worker(config: TcpConfig, secret: bytes, patience: Patience) -> WorkerWorld:
    connection = Connector(config, secret, client_context(config)).connect()
    prepare_data(connection.links[Link.DATA], config.timeout_s)
    prepare_control(connection.links[Link.CONTROL], config.timeout_s)
    channel = make_channel(connection.links[Link.DATA], connection.coordinator, patience.spinner)
    link = ControlLink(connection.links[Link.CONTROL], connection.coordinator)
    watch = WorkerWatch({0: link}, Progress(), config.timeout_s)
    return WorkerWorld(config.rank, config.size, channel, watch, patience)
