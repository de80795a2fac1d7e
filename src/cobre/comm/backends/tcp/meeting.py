"""From a configuration to a connected world."""

from cobre.comm.backends.tcp.channel import make_channel
from cobre.comm.backends.tcp.control import ControlLink
from cobre.comm.backends.tcp.coordinator import CoordinatorWorld
from cobre.comm.backends.tcp.handshake import this_process
from cobre.comm.backends.tcp.joining import Joining
from cobre.comm.backends.tcp.protocol import Link
from cobre.comm.backends.tcp.rendezvous import Rendezvous
from cobre.comm.backends.tcp.secret import load_secret
from cobre.comm.backends.tcp.socket_options import prepare_control, prepare_data
from cobre.comm.backends.tcp.spinning import spinner_for
from cobre.comm.backends.tcp.tls import client_context, server_context
from cobre.comm.backends.tcp.waiting import OnWait, Patience
from cobre.comm.backends.tcp.watch import CoordinatorWatch, Progress, WorkerWatch
from cobre.comm.backends.tcp.worker import WorkerWorld
from cobre.comm.backends.tcp.world import World
from cobre.comm.config import TcpConfig


def meet(config: TcpConfig, on_wait: OnWait) -> World:
    """Join the world that the configuration describes."""
    secret = load_secret(config)
    patience = Patience(spinner_for(config.size), config.operation_timeout_s, on_wait)
    if config.rank == 0:
        return _coordinate(config, secret, patience)
    return _work(config, secret, patience)


def _coordinate(config: TcpConfig, secret: bytes, patience: Patience) -> CoordinatorWorld:
    members = Rendezvous(config, secret, server_context(config)).gather() if config.size > 1 else {}
    channels, links = {}, {}
    for rank, member in members.items():
        prepare_data(member.links[Link.DATA], config.timeout_s)
        prepare_control(member.links[Link.CONTROL], config.timeout_s)
        channels[rank] = make_channel(member.links[Link.DATA], member.peer, patience.spinner)
        links[rank] = ControlLink(member.links[Link.CONTROL], member.peer)
    watch = CoordinatorWatch(links, Progress(), config.timeout_s)
    return CoordinatorWorld(channels, this_process(0), watch, patience)


def _work(config: TcpConfig, secret: bytes, patience: Patience) -> WorkerWorld:
    joined = Joining(config, secret, client_context(config)).join()
    prepare_data(joined.links[Link.DATA], config.timeout_s)
    prepare_control(joined.links[Link.CONTROL], config.timeout_s)
    channel = make_channel(joined.links[Link.DATA], joined.coordinator, patience.spinner)
    link = ControlLink(joined.links[Link.CONTROL], joined.coordinator)
    watch = WorkerWatch({0: link}, Progress(), config.timeout_s)
    return WorkerWorld(config.rank, config.size, channel, watch, patience)
