"""Where all processes of a job hear of each other how it goes, beside the calls of any communicator.

A rank that gives up comes here, and so do ranks that are well, at points where all of them can still leave in order.
Then one rank says for all what was wrong. A rank that nobody joins knows that the others wait for it in a call, which
only the end of the job can end.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from cobre.comm.backends.mpi.library import Mpi
from cobre.comm.plain_end import PlainEnd

LONGEST_NAP_S = 0.005
MAX_MESSAGE = 10_000


class Assembly:
    """Meetings of all processes; each is a collective of its own, on a communicator of its own."""

    def __init__(self, mpi: Mpi) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD.Dup()
        self._lent: list[object] = []  # to MPI, which may write there even when we have given up waiting

    def meet(self, own: PlainEnd | None, within_s: float | None = None) -> list[PlainEnd | None] | None:
        """How it goes on every rank, None for one that is well; None at all: not all ranks came in time."""
        words = np.frombuffer(_encode(own), np.uint8)
        counts = np.zeros(self._comm.Get_size(), np.int64)
        sent = np.array([words.size], np.int64)
        self._lent.append((sent, counts))
        if not _is_over(self._comm.Iallgather(sent, counts), within_s):
            return None
        self._lent.pop()
        everything = np.empty(int(counts.sum()), np.uint8)
        if everything.size:
            self._comm.Allgatherv((words, self._mpi.BYTE), (everything, counts.tolist(), self._mpi.BYTE))
        parts = np.split(everything, np.cumsum(counts)[:-1])
        return [_decode(part.tobytes()) for part in parts]


def agreed_end(rank: int, ends: Sequence[PlainEnd | None]) -> PlainEnd | None:
    """How this rank ends after a meeting: rank 0 says for all what is to be said; None when all are well."""
    failed = [end for end in ends if end is not None]
    if not failed:
        return None
    different = {end.message: end for end in reversed(failed)}
    words = [end.words for end in failed if different[end.message] is end]
    message = "\n".join(words) if rank == 0 else ""
    return PlainEnd(message, failed[0].exit_code, is_agreed=True)


def _is_over(request: Mpi, within_s: float | None) -> bool:
    deadline = None if within_s is None else time.monotonic() + within_s
    nap_s = 0.0
    while not request.Test():
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(nap_s)
        nap_s = min(nap_s + 0.0001, LONGEST_NAP_S)
    return True


def _encode(end: PlainEnd | None) -> bytes:
    return b"" if end is None else json.dumps(asdict(replace(end, message=_shortened(end.message)))).encode()


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]} ..."


def _decode(content: bytes) -> PlainEnd | None:
    return PlainEnd(**json.loads(content)) if content else None
