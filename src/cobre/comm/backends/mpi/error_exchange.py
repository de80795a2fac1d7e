"""How the processes of a group agree on an error report, apart from the calls of any communicator.

A rank that gives up takes part, and so does every rank that calls `check_failures`. If all ranks do, they can leave in
order, and one of them prints the report for all. If some do not, they are waiting in a collective, which only aborting
the job can end.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from cobre.comm.backends.mpi.library import Mpi, MpiComm
from cobre.comm.exit_report import ExitReport

MAX_BACKOFF_S = 0.005
MAX_MESSAGE = 10_000


class ErrorExchange:
    """Exchanges reports between the processes of a group, on a communicator of its own, by collectives."""

    def __init__(self, mpi: Mpi, comm: MpiComm) -> None:
        self._mpi = mpi
        self._comm = comm.Dup()
        # Buffers of exchanges that timed out. A nonblocking collective cannot be cancelled: MPI may write to them at a
        # later time, so they are kept.
        self._abandoned: list[object] = []

    def exchange(self, own: ExitReport | None, within_s: float | None = None) -> list[ExitReport | None] | None:
        """Every rank's report, by rank, with None for a rank without an error; None if not all ranks came in time.

        within_s: how long to wait for the others, in seconds; None: without limit.
        """
        payload = np.frombuffer(_encode(own), np.uint8)
        counts = np.zeros(self._comm.Get_size(), np.int64)
        sent = np.array([payload.size], np.int64)
        self._abandoned.append((sent, counts))
        # The sizes are exchanged by a nonblocking collective, because the others may never come. Once it has completed,
        # all ranks are here, and a blocking call for the reports themselves cannot hang.
        if not _completes_within(self._comm.Iallgather(sent, counts), within_s):
            return None
        self._abandoned.pop()
        everything = np.empty(int(counts.sum()), np.uint8)
        if everything.size:
            self._comm.Allgatherv((payload, self._mpi.BYTE), (everything, counts.tolist(), self._mpi.BYTE))
        parts = np.split(everything, np.cumsum(counts)[:-1])
        return [_decode(part.tobytes()) for part in parts]


def agreed_exit(rank: int, reports: Sequence[ExitReport | None]) -> ExitReport | None:
    """The report that this rank ends with: rank 0 prints each different message once, the others print nothing.

    None if no rank failed.
    """
    failed = [report for report in reports if report is not None]
    if not failed:
        return None
    first_with = {report.message: report for report in reversed(failed)}
    texts = [report.text for report in failed if first_with[report.message] is report]
    message = "\n".join(texts) if rank == 0 else ""
    return ExitReport(message, failed[0].exit_code, is_agreed=True, details=failed[0].details)


def reasons(reports: Sequence[ExitReport | None]) -> str:
    """Why ranks gave up: each different message once."""
    return "; ".join(dict.fromkeys(report.text for report in reports if report is not None and report.text))


def _completes_within(request: Mpi, within_s: float | None) -> bool:
    deadline = None if within_s is None else time.monotonic() + within_s
    backoff_s = 0.0
    while not request.Test():
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(backoff_s)  # MPI makes progress only inside its calls, so the pauses stay short
        backoff_s = min(backoff_s + 0.0001, MAX_BACKOFF_S)
    return True


def _encode(report: ExitReport | None) -> bytes:
    if report is None:
        return b""
    return json.dumps(asdict(replace(report, message=_shortened(report.message)))).encode()


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]} ..."


def _decode(content: bytes) -> ExitReport | None:
    return ExitReport(**json.loads(content)) if content else None
