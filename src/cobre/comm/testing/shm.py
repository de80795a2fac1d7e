"""The shared-memory backend as the kit sees it."""

from cobre.comm.config import WAIT_STRATEGIES, ShmConfig
from cobre.comm.testing.profiles import Profile, Seat, Variant, launched


def take_seat(seat: Seat) -> dict[str, str]:
    """The variables of one rank."""
    return ShmConfig(
        name=seat.world,
        rank=seat.rank,
        size=seat.size,
        timeout_s=seat.timeout_s,
        connect_timeout_s=seat.connect_timeout_s,
        operation_timeout_s=seat.operation_timeout_s,
    ).to_env()


PROFILE = Profile(
    "shm",
    launched("shm"),
    variants=(
        *(Variant(wait, {"COBRE_SHM_WAIT": wait}) for wait in WAIT_STRATEGIES),
        # The smallest window: everything is moved in pieces, and there is room for it everywhere.
        Variant("narrow", {"COBRE_SHM_WINDOW_BYTES": "1"}, leaves_out=("faults/shm_no_space_for_world",)),
    ),
    seat=take_seat,
)
