"""The profile of the shm backend."""

from cobre.comm.config import WAIT_STRATEGIES, ShmConfig
from cobre.comm.testing.profiles import Profile, RankOptions, Variant, launched


def rank_environment(options: RankOptions) -> dict[str, str]:
    """Return the environment variables of one rank."""
    return ShmConfig(
        name=options.world,
        rank=options.rank,
        size=options.size,
        timeout_s=options.timeout_s,
        connect_timeout_s=options.connect_timeout_s,
        operation_timeout_s=options.operation_timeout_s,
    ).to_env()


PROFILE = Profile(
    "shm",
    launched("shm"),
    variants=(
        *(Variant(wait, {"COBRE_SHM_WAIT": wait}) for wait in WAIT_STRATEGIES),
        # The smallest window: everything is moved in pieces, and it fits into any /dev/shm.
        Variant("narrow", {"COBRE_SHM_WINDOW_BYTES": "1"}, excluded_cases=("faults/shm_no_space_for_world",)),
    ),
    rank_environment=rank_environment,
)
