"""Files that rank 0 reads for all: small ones whole, large ones piece by piece, to ranks that need the piece."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.core.arrays import Floats
from cobre.io.storage.array_file import ArrayFile


def share_bytes(comm: Communicator, content: bytes, label: str) -> memoryview:
    """Rank 0's bytes, on all ranks."""
    if comm.size == 1:
        return memoryview(content)
    size = np.array([len(content)], np.int64)
    comm.broadcast(size, 0, label=f"size of the {label}")
    buffer = np.frombuffer(content, np.uint8).copy() if comm.rank == 0 else np.empty(int(size[0]), np.uint8)
    comm.broadcast(buffer, 0, label=label)
    return buffer.data


class LargeArrays:
    """Arrays of a file that rank 0 has open. shapes: by name, the same on all ranks."""

    def __init__(self, comm: Communicator, file: ArrayFile | None, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._comm = comm
        self._file = file
        self.shapes = shapes

    def read_on_rank_0(self, name: str, start: int, count: int) -> Floats | None:
        """Some consecutive numbers on rank 0; None elsewhere."""
        return None if self._file is None else self._file.part(name, start, count)

    def part(self, name: str, start: int, count: int, *, for_all: bool) -> Floats | None:
        """Some consecutive numbers on rank 0 and, with `for_all`, on all ranks, which then must all ask; else None."""
        found = self.read_on_rank_0(name, start, count)
        if not for_all:
            return found
        table = np.empty(count) if found is None else found
        self._comm.broadcast(table, 0, label="piece of the checkpoint")
        return table

    def broadcast(self, table: NDArray[Any]) -> None:
        """Overwrite the table of every other rank by that of rank 0."""
        self._comm.broadcast(table.reshape(-1), 0, label="facts of the checkpoint")

    def close(self) -> None:
        """Nothing more will be read."""
        if self._file is not None:
            self._file.close()
