"""A folder that all ranks see: on a file system of a cluster, or because they are on one machine."""

import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cobre.comm import Communicator, ReduceOp
from cobre.io.storage.confined import create_file, remove_file


class CommonFolder:
    """Files that other ranks write and rank 0 reads; their names belong to this run alone."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def create(self, rank: int, number: int) -> BinaryIO:
        """A file of a rank; rank 0 finds all of it once it is closed."""
        return create_file(self._path(rank, number))

    def take(self, rank: int, number: int) -> BinaryIO:
        """Open a file that a rank has closed; its name is gone afterwards."""
        path = self._path(rank, number)
        file = path.open("rb", buffering=0)
        remove_file(path)
        return file

    def is_there(self, rank: int, number: int) -> bool:
        """Whether a rank's file can be seen."""
        return self._path(rank, number).is_file()

    def remove(self, rank: int, number: int) -> None:
        """Remove a rank's file, if it is there."""
        with suppress(OSError):
            remove_file(self._path(rank, number))

    def _path(self, rank: int, number: int) -> Path:
        return self._folder / f"{self._prefix}-{rank}-{number}"


def find_common_folder(comm: Communicator, folder: Path | None) -> CommonFolder | None:
    """The folder, if all ranks can write files there that rank 0 sees, and None otherwise; every rank must ask."""
    if folder is None:
        return None
    prefix = np.frombuffer(secrets.token_bytes(8), np.uint64).copy()
    comm.broadcast(prefix, 0, label="name of common files")
    common = CommonFolder(folder, f"rows-{int(prefix[0]):016x}")
    is_common = _try(comm, common)
    common.remove(comm.rank, 0)
    return common if is_common else None


def _try(comm: Communicator, common: CommonFolder) -> bool:
    has_written = True
    try:
        common.create(comm.rank, 0).close()
    except OSError:  # another machine's folder, which may not even be there
        has_written = False
    answer = np.array([has_written], np.uint8)
    comm.allreduce(answer, answer, ReduceOp.MIN, label="common folder")
    if comm.rank == 0 and answer[0]:
        answer[0] = all(common.is_there(rank, 0) for rank in range(comm.size))
    comm.broadcast(answer, 0, label="common folder")
    return bool(answer[0])
