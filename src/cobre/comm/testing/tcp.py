"""The profile of the tcp backend."""

import hashlib
import platform

from cobre.comm import variables
from cobre.comm.config import DEFAULT_TCP_PORT, TcpConfig
from cobre.comm.testing.profiles import Profile, RankOptions, Variant, launched

NO_FENCE = "faults/*operation=fence*"  # a fence waits for ranks of the same host only


def rank_environment(options: RankOptions) -> dict[str, str]:
    """Return the environment variables of one rank; address, port and secret are derived from the world's name."""
    coordinator, port = _connections_and_limits(options.world)
    return TcpConfig(
        coordinator=coordinator,
        rank=options.rank,
        size=options.size,
        port=port,
        timeout_s=options.timeout_s,
        connect_timeout_s=options.connect_timeout_s,
        operation_timeout_s=options.operation_timeout_s,
        secret=hashlib.sha256(options.world.encode()).hexdigest(),
        run_id=options.world,
    ).to_env()


def _connections_and_limits(world: str) -> tuple[str, int]:
    """Return a loopback address for each world if the system has many (Linux), else a port for each."""
    digest = hashlib.sha256(world.encode()).digest()
    if platform.system() == "Linux":
        return f"127.{digest[0] % 254 + 1}.{digest[1]}.{digest[2] % 254 + 1}", DEFAULT_TCP_PORT
    return "127.0.0.1", 20000 + int.from_bytes(digest[:2]) % 12000


def _hosts_of(ranks: int, ring_bytes: int) -> dict[str, str]:
    return {variables.TCP_RANKS_PER_HOST: str(ranks), variables.TCP_RING_BYTES: str(ring_bytes)}


PROFILE = Profile(
    "tcp",
    launched("tcp"),
    variants=(
        Variant("host"),  # all ranks of this host share its memory: the default
        Variant("pairs", _hosts_of(2, ring_bytes=0), excluded_cases=(NO_FENCE,)),
        Variant("star", _hosts_of(1, ring_bytes=0), excluded_cases=(NO_FENCE,)),
        # Every gather and broadcast of one byte or more travels from host to host.
        Variant("ring", _hosts_of(1, ring_bytes=1), excluded_cases=(NO_FENCE,)),
        Variant("ring-pairs", _hosts_of(2, ring_bytes=1), excluded_cases=(NO_FENCE,)),
    ),
    rank_environment=rank_environment,
)
