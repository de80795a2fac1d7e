"""The profile of the tcp backend."""

import hashlib
import platform

from cobre.comm.config import DEFAULT_TCP_PORT, TcpConfig
from cobre.comm.testing.profiles import Profile, RankOptions, Variant, launched

NO_FENCE = "faults/*operation=fence*"  # a fence waits for ranks of the same host only


def rank_environment(options: RankOptions) -> dict[str, str]:
    """The environment variables of one rank; address, port and secret are derived from the name of the world."""
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
    """A loopback address for each world if the system has many (Linux), else a port for each."""
    digest = hashlib.sha256(world.encode()).digest()
    if platform.system() == "Linux":
        return f"127.{digest[0] % 254 + 1}.{digest[1]}.{digest[2] % 254 + 1}", DEFAULT_TCP_PORT
    return "127.0.0.1", 20000 + int.from_bytes(digest[:2]) % 12000


PROFILE = Profile(
    "tcp",
    launched("tcp"),
    variants=(
        Variant("host"),  # all ranks of this host share its memory: the default
        Variant("pairs", {"COBRE_TCP_RANKS_PER_HOST": "2"}, excluded_cases=(NO_FENCE,)),
        Variant("star", {"COBRE_TCP_RANKS_PER_HOST": "1"}, excluded_cases=(NO_FENCE,)),
    ),
    rank_environment=rank_environment,
)
