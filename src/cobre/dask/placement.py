"""Placement of ranks on Dask workers, and how the ranks find each other."""

import os
import secrets
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cobre import __version__
from cobre.comm import TcpConfig
from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.study.arguments import checked_count

if TYPE_CHECKING:
    from distributed import Client


class PlacementError(CobreError, RuntimeError):
    """The workers of a cluster cannot be ranks of one run; the message says why, and what to change."""

    remedy = "change the client or its cluster as the message says"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """Host, process id and version of Cobre of a Dask worker, as it reports them."""

    host: str
    pid: int
    version: str


@dataclass(frozen=True, slots=True)
class RankAssignment:
    """A rank, the Dask worker that runs it, and the configuration by which it joins the others."""

    address: str
    threads: int
    world: TcpConfig
    process: WorkerProcess = field(compare=False)

    @property
    def rank(self) -> int:
        """The rank's number, from 0; rank 0 coordinates."""
        return self.world.rank

    @property
    def name(self) -> str:
        """Rank, host and address, for messages."""
        return f"rank {self.rank} (Dask worker {self.address}, host {self.process.host}, pid {self.process.pid})"


def assign_ranks(
    client: "Client", num_workers: int | None, threads: int | None, port: int | None, connect_timeout_s: float
) -> list[RankAssignment]:
    """Return a worker for each rank, in rank order. Raises PlacementError; nothing is started before."""
    check_client(client)
    threads_of: Mapping[str, int] = client.nthreads()
    addresses = choose_workers(sorted(threads_of), num_workers)
    processes = _query_workers(client, addresses)
    check_processes(processes)
    coordinator = host_of(addresses[0])
    chosen_port = port or client.run(free_port, coordinator, workers=[addresses[0]])[addresses[0]]
    secret, run_id = secrets.token_hex(32), secrets.token_hex(8)
    return [
        RankAssignment(
            address,
            threads or threads_of[address],
            TcpConfig(
                coordinator=coordinator,
                rank=rank,
                size=len(addresses),
                port=chosen_port,
                secret=secret,
                run_id=run_id,
                connect_timeout_s=connect_timeout_s,
            ),
            processes[address],
        )
        for rank, address in enumerate(addresses)
    ]


def check_client(client: object) -> None:
    """Raise if this is not a client of a running cluster, or if it is asynchronous."""
    from distributed import Client  # noqa: PLC0415  (already imported by callers that have a client)

    if not isinstance(client, Client):
        raise TypeError(f"expected a Dask client, distributed.Client(...), not {client!r}")
    if client.asynchronous:
        raise PlacementError("the client is asynchronous; train() waits for its result: give it a plain Client(...)")
    if client.status in ("closing", "closed"):
        raise PlacementError("the client is closed: create another Client(...)")


def choose_workers(addresses: Sequence[str], num_workers: int | None) -> list[str]:
    """Return all workers, or the first `num_workers`.

    Raise TypeError or ValueError if that is not a positive integer.
    """
    count = checked_count("num_workers", num_workers)
    if not addresses:
        raise PlacementError("the cluster has no workers yet: client.wait_for_workers(n) waits for them")
    if count is not None and count > len(addresses):
        raise PlacementError(
            f"{count} ranks need {count} workers, one process each, and the cluster has {len(addresses)}: "
            f"ask for fewer, or start more (client.wait_for_workers({count}) waits for them)"
        )
    selected = list(addresses[:count])
    if any(address.startswith("inproc://") for address in selected):
        raise PlacementError(
            "the cluster's workers are threads of this process, and every rank needs a process of its own: "
            "use LocalCluster(processes=True), or cobre.train(num_workers=...) without Dask"
        )
    return selected


def check_processes(processes: Mapping[str, WorkerProcess]) -> None:
    """Raise PlacementError if workers share a process, or have another version of Cobre than this process."""
    counts = Counter((process.host, process.pid) for process in processes.values())
    (host, pid), count = counts.most_common(1)[0]
    if count > 1:
        raise PlacementError(
            f"{count} workers share process {pid} on {host}, and every rank needs a process of its own: "
            "start the workers as processes (dask worker --nworkers N)"
        )
    for address, process in processes.items():
        if process.version != __version__:
            raise PlacementError(
                f"worker {address} runs cobre {process.version}, the client {__version__}: install the same version"
            )


def host_of(address: str) -> str:
    """Return the host of a Dask address such as tcp://10.0.0.5:41233, with brackets around an IPv6 address."""
    host = urlsplit(address).hostname
    if host is None:
        raise PlacementError(f"the worker's address {address} has no host name that other workers could reach")
    return f"[{host}]" if ":" in host else host


def _query_workers(client: "Client", addresses: Sequence[str]) -> Mapping[str, WorkerProcess]:
    try:
        processes: Mapping[str, WorkerProcess] = client.run(this_process, workers=list(addresses))
    except Exception as error:  # Dask may wrap an import error of the worker in another type
        raise PlacementError(
            f"the workers cannot run cobre ({error}): install pycobre[dask] {__version__} where they run"
        ) from error
    return processes


def this_process() -> WorkerProcess:
    """Describe this process; called on a worker."""
    return WorkerProcess(socket.gethostname(), os.getpid(), __version__)


def free_port(host: str) -> int:
    """Return a free port of this machine; called on rank 0's worker. The kernel does not reassign it soon."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((bare, 0))
        except OSError:  # the address belongs to a router in front of this machine, or is a name
            probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
