"""`except cobre.errors.CobreError` catches every error that this package defines."""

import importlib
import pkgutil

import cobre
from cobre.errors import CobreError

OWN_WAY = (KeyboardInterrupt, SystemExit)  # how a terminal or a worker ends
# Caught inside a backend or the extension, which raise a CommError or a StageFailedError instead.
INSIDE = {
    "cobre._native.JoinFailure",
    "cobre._native.LpFailure",
    "cobre._native.CollectiveFailure",
    "cobre.comm.backends.tcp.transport.channel.LinkLostError",
    "cobre.comm.backends.tcp.liveness.WorldFailedError",
    "cobre.comm.backends.tcp.wire.protocol.ProtocolError",
    "cobre.comm.backends.tcp.rendezvous.handshake.RefusedError",
    "cobre.comm.backends.tcp.rendezvous.handshake.UnprovenRefusalError",
    "cobre.comm.backends.tcp.rendezvous.connector.HandshakeFailedError",
    "cobre.comm.backends.tcp.rendezvous.ring.UnreachableError",
    "cobre.comm.backends.tcp.wire.messages.VersionError",
    "cobre.comm.launch.fork_server.ForkServerGoneError",
    "cobre.sddp.training.loop.IterationDropped",
}


def modules():
    found = [cobre]
    for info in pkgutil.walk_packages(cobre.__path__, "cobre."):
        if ".testing" in info.name or info.name.endswith("__main__") or ".templates" in info.name:
            continue
        try:
            found.append(importlib.import_module(info.name))
        except ModuleNotFoundError as error:  # an extra that is not installed
            assert not (error.name or "").startswith("cobre"), error
    return found


def test_package_errors_derive_from_cobre_error():
    defined = {
        value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__.startswith("cobre")
    }
    assert len(defined) > 30
    strays = {
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in defined
        if not issubclass(kind, (CobreError, *OWN_WAY)) and not kind.__name__.startswith("_")
    }
    assert strays - INSIDE == set()
