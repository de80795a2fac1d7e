"""One rank of torch.distributed on gloo: `python -m collectives.ranks.gloo FOLDER CASE ... --rank R --size N --port P`.

Needs torch and not cobre. The ranks meet at a TCP store in rank 0, which inherits the socket that it listens on.
"""

from datetime import timedelta

import torch
import torch.distributed as dist

from collectives.adapters.gloo import GlooAdapter
from collectives.ranks.entry import measure_and_leave, rank_parser

LOOPBACK = "127.0.0.1"
TIMEOUT = timedelta(seconds=60)


def main() -> None:
    """Join the world, and measure."""
    parser = rank_parser()
    for name in ("--rank", "--size", "--port"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--listener", type=int, help="descriptor of rank 0's listening socket")
    options = parser.parse_args()
    torch.set_num_threads(1)
    store = dist.TCPStore(
        LOOPBACK,
        options.port,
        options.size,
        options.rank == 0,
        timeout=TIMEOUT,
        master_listen_fd=options.listener,
    )
    dist.init_process_group("gloo", store=store, rank=options.rank, world_size=options.size, timeout=TIMEOUT)
    measure_and_leave([GlooAdapter(options.rank, options.size)], options)
    dist.barrier()  # nobody takes the store away while others still use it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
