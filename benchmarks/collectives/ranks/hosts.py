"""One rank on a host of its own: `python -m collectives.ranks.hosts FOLDER CASE ... --rank R --size N [--gloo-ring]`.

Of ours if the environment names a world of tcp, else of torch.distributed on gloo; neither needs the other installed.
"""

import json
import os
from collections.abc import Sequence
from datetime import timedelta

from collectives.cases import CASES, Case, Kind
from collectives.ranks.entry import durations_file, rank_parser
from collectives.timing import Durations, measure

PORT = 29500
TIMEOUT = timedelta(seconds=300)
SMALL = (
    Case("barrier", Kind.BARRIER, 0, 20, 10),
    Case("allgatherv 8 B", Kind.ALLGATHERV, 1, 20, 10),
    Case("allgatherv 8 KB", Kind.ALLGATHERV, 1_000, 20, 10),
    Case("allgatherv 64 KB", Kind.ALLGATHERV, 8_000, 10, 10),
    Case("broadcast 64 KB", Kind.BROADCAST, 8_000, 10, 10),
)
LARGE = {"allgatherv 3.2 MB": 15, "allgatherv 206 MB": 3, "broadcast 20 MB": 6}  # repetitions


def cases() -> list[Case]:
    """Return the cases to measure: small calls, and payloads of production runs."""
    large = [case for case in CASES if case.name in LARGE]
    return [*SMALL, *(Case(case.name, case.kind, case.elements, 1, LARGE[case.name]) for case in large)]


def address(number: int) -> str:
    """Return the address of a host."""
    return f"10.78.0.{number + 1}"


def measure_cobre(chosen: Sequence[Case]) -> Durations:
    """Measure Cobre; the environment describes the world."""
    from cobre.comm import create_communicator  # noqa: PLC0415 - not installed beside gloo
    from collectives.adapters.cobre import CobreAdapter  # noqa: PLC0415 - as above

    with create_communicator("tcp") as comm:
        return measure(CobreAdapter(comm), chosen)


def measure_gloo(rank: int, size: int, chosen: Sequence[Case], *, ring_only: bool) -> Durations:
    """Measure gloo, whose ranks meet at a store in rank 0."""
    import torch  # noqa: PLC0415 - not installed beside cobre
    import torch.distributed as dist  # noqa: PLC0415 - as above

    from collectives.adapters.gloo import GlooAdapter  # noqa: PLC0415 - as above

    torch.set_num_threads(1)
    store = dist.TCPStore(address(0), PORT, size, rank == 0, timeout=TIMEOUT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    durations = measure(GlooAdapter(rank, size, ring_only=ring_only), chosen)
    dist.barrier()  # nobody takes the store away while others still use it
    dist.destroy_process_group()
    return durations


def main() -> None:
    """Measure, and leave the durations in the folder."""
    parser = rank_parser()
    for name in ("--rank", "--size"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--gloo-ring", action="store_true")
    options = parser.parse_args()
    chosen = [case for case in cases() if case.name in options.cases]
    is_ours = "COBRE_TCP_RANK" in os.environ
    if is_ours:
        durations = measure_cobre(chosen)
    else:
        durations = measure_gloo(options.rank, options.size, chosen, ring_only=options.gloo_ring)
    durations_file(options.folder, options.rank).write_text(json.dumps(durations))


if __name__ == "__main__":
    main()
