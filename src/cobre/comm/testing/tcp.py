"""The tcp backend as the kit sees it."""

import hashlib
import platform

from cobre.comm.config import DEFAULT_TCP_PORT, TcpConfig
from cobre.comm.testing.profiles import Profile, Seat, Variant, launched

NO_FENCE = "faults/*operation=fence*"  # a fence waits for ranks of the same host only


def take_seat(seat: Seat) -> dict[str, str]:
    """The variables of one rank; the world's name decides where it meets."""
    coordinator, port = _place_of(seat.world)
    return TcpConfig(
        coordinator=coordinator,
        rank=seat.rank,
        size=seat.size,
        port=port,
        timeout_s=seat.timeout_s,
        connect_timeout_s=seat.connect_timeout_s,
        operation_timeout_s=seat.operation_timeout_s,
        secret=hashlib.sha256(seat.world.encode()).hexdigest(),
        run_id=seat.world,
    ).to_env()


def _place_of(world: str) -> tuple[str, int]:
    """Every world has a loopback address of its own where the system has many, else a port of its own."""
    digest = hashlib.sha256(world.encode()).digest()
    if platform.system() == "Linux":
        return f"127.{digest[0] % 254 + 1}.{digest[1]}.{digest[2] % 254 + 1}", DEFAULT_TCP_PORT
    return "127.0.0.1", 20000 + int.from_bytes(digest[:2]) % 12000


PROFILE = Profile(
    "tcp",
    launched("tcp"),
    variants=(
        Variant("host"),  # all ranks of this host share its memory, as they do unless told otherwise
        Variant("pairs", {"COBRE_TCP_RANKS_PER_HOST": "2"}, leaves_out=(NO_FENCE,)),
        Variant("star", {"COBRE_TCP_RANKS_PER_HOST": "1"}, leaves_out=(NO_FENCE,)),
    ),
    seat=take_seat,
)
