"""Transfer of the rows of a wave to rank 0: stage by stage, or through files that it reads at the end."""

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from cobre.comm import Communicator, ReduceOp, SharedMemoryProvider, SharedRegion
from cobre.core.arrays import Floats
from cobre.io.storage.atomic import on_failure
from cobre.io.storage.confined import create_file, remove_file
from cobre.sddp.ranks import WorkSplit, count_sharing_memory, gather_rows
from cobre.sddp.simulation.spool import JoinedNumbers, Spool, StoredNumbers
from cobre.sddp.simulation.stage_rows import StageExtractor

# Results of all ranks, stage by stage, for rank 0.


class Collector:
    """Sends rows of numbers from all ranks to rank 0. Collective: every rank makes every call.

    memory: shared by all ranks; without it rows are gathered on all ranks.
    max_numbers: maximum of all ranks' numbers together.
    """

    def __init__(self, comm: Communicator, memory: SharedMemoryProvider | None, max_numbers: int) -> None:
        self._comm = comm
        self._half = max_numbers
        self._turn = 0
        self._region: SharedRegion | None = None
        if memory is not None and comm.size > 1:
            # Two halves, used in turn: rank 0 reads one while the others write into the other.
            self._region = memory.create_shared_region(2 * max_numbers, np.float64, label="results")

    def collect(self, split: WorkSplit, own: Floats, label: str, take: Callable[[Floats], None]) -> None:
        """Hand all ranks' rows to `take` on rank 0, in the order of ranks; they are valid until it returns."""
        if self._comm.size == 1:
            take(own)
        elif self._region is None:
            table = gather_rows(self._comm, split, own, label)
            if self._comm.rank == 0:
                take(table)
        else:
            self._share(self._region, split, own, label, take)

    def _share(
        self, region: SharedRegion, split: WorkSplit, own: Floats, label: str, take: Callable[[Floats], None]
    ) -> None:
        width = own.shape[1]
        start = self._turn * self._half
        block = split.block(self._comm.rank)
        if block:
            first, last = start + block.start * width, start + block.stop * width
            region.as_mut_array(first, last)[:] = own.reshape(-1)
        region.fence(label=label)
        if self._comm.rank == 0:
            take(region.as_array()[start : start + split.total * width].reshape(split.total, width))
        self._turn = 1 - self._turn

    def close(self) -> None:
        """Release the shared memory, if there is any."""
        if self._region is not None:
            self._region.close()


# A folder that all ranks see: on a file system of a cluster, or because they are on one machine.


class CommonFolder:
    """Files that other ranks write and rank 0 reads; their names are unique to this run."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def create(self, rank: int, number: int) -> BinaryIO:
        """Create the file of a rank; rank 0 finds all of it once it is closed."""
        return create_file(self._path(rank, number))

    def take(self, rank: int, number: int) -> BinaryIO:
        """Open a file that a rank has closed; its name is gone afterwards."""
        path = self._path(rank, number)
        file = path.open("rb", buffering=0)
        remove_file(path)
        return file

    def is_there(self, rank: int, number: int) -> bool:
        """Return whether a rank's file can be seen."""
        return self._path(rank, number).is_file()

    def remove(self, rank: int, number: int) -> None:
        """Remove a rank's file, if it is there."""
        with suppress(OSError):
            remove_file(self._path(rank, number))

    def _path(self, rank: int, number: int) -> Path:
        return self._folder / f"{self._prefix}-{rank}-{number}"


def find_common_folder(comm: Communicator, folder: Path | None) -> CommonFolder | None:
    """Return the folder if rank 0 sees files that all ranks write there, else None. Collective: call on every rank."""
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


Extractors = tuple[StageExtractor, ...]


class Wave(Protocol):
    """Consecutive scenarios that are simulated side by side."""

    def add_stage(self, numbers: Floats) -> None:
        """Add this rank's numbers of the next stage. Collective: call on every rank for every stage."""

    def end(self) -> None:
        """End the wave when all stages have been added."""

    def numbers(self) -> StoredNumbers:
        """Return the numbers of all scenarios, on rank 0, after every rank has called `end`."""

    def close(self) -> None:
        """Release memory and files."""

    def abandon(self) -> None:
        """Remove what is left after a failure."""


class CollectedWave:
    """Each stage's numbers are brought to rank 0, which keeps them."""

    def __init__(self, collector: Collector, split: WorkSplit, spool: Spool) -> None:
        self._collector = collector
        self._split = split
        self._spool = spool
        self._stage = 0

    def add_stage(self, numbers: Floats) -> None:
        """Add this rank's numbers of the next stage. Collective: call on every rank for every stage."""
        self._collector.collect(self._split, numbers, f"results of stage {self._stage}", self._spool.add_stage)
        self._stage += 1

    def end(self) -> None:
        """Do nothing: rank 0 has everything already."""

    def numbers(self) -> StoredNumbers:
        """Return the numbers of all scenarios, on rank 0."""
        return self._spool

    def close(self) -> None:
        """Release memory and files."""
        self._spool.close()

    def abandon(self) -> None:
        """Do nothing after a failure: files without a name end with the process."""
        self._spool.close()


class FileWave:
    """Each rank writes its own numbers into a file in a folder that all see, and nothing goes through messages."""

    def __init__(
        self, rank: int, blocks: list[range], extractors: Extractors, folder: Path, common: CommonFolder
    ) -> None:
        self._rank = rank
        self._blocks = blocks
        self._extractors = extractors
        self._common = common
        own = blocks[rank]
        file = _nameless_file(folder) if rank == 0 else common.create(rank, own.start) if own else None
        self._own = Spool(own, extractors, file)
        self._others: list[Spool] = []

    def add_stage(self, numbers: Floats) -> None:
        """Add this rank's numbers of the next stage."""
        self._own.add_stage(numbers)

    def end(self) -> None:
        """Close the files when all stages have been added, so that rank 0 finds all of them wherever it runs."""
        if self._rank != 0:
            self._own.close()

    def numbers(self) -> StoredNumbers:
        """Return the numbers of all scenarios, on rank 0, after every rank has called `end`."""
        others = [(rank, block) for rank, block in enumerate(self._blocks) if rank and block]
        self._others = [Spool(block, self._extractors, self._common.take(rank, block.start)) for rank, block in others]
        return JoinedNumbers([self._own, *self._others])

    def close(self) -> None:
        """Close all files."""
        for spool in (self._own, *self._others):
            spool.close()

    def abandon(self) -> None:
        """Remove this rank's file after a failure."""
        self.close()
        self._common.remove(self._rank, self._blocks[self._rank].start)


class Waves:
    """Makes the waves of a simulation; every rank must take part. max_scenarios: of a wave.

    Where all ranks see the same memory, rows are brought to rank 0 there. Elsewhere, as on several nodes, they are left
    in files if all ranks see `folder`. Only where neither is so they are gathered, which brings them to all ranks.
    """

    def __init__(
        self,
        comm: Communicator,
        memory: SharedMemoryProvider | None,
        folder: Path | None,
        extractors: Extractors,
        max_scenarios: int,
    ) -> None:
        self._comm = comm
        self._folder = folder
        self._extractors = extractors
        is_alone = comm.size == 1 or (memory is not None and count_sharing_memory(memory) == comm.size)
        self._common = None if is_alone else find_common_folder(comm, folder)
        widest = max(extractor.width for extractor in extractors)
        self._collector = Collector(comm, memory if is_alone else None, max_scenarios * widest)

    @contextmanager
    def next(self, scenarios: range) -> Iterator[Wave]:
        """Begin the wave of these scenarios; it is closed at the end, and abandoned on an error."""
        wave = self._begin(scenarios)
        with on_failure(wave.abandon):
            yield wave
        wave.close()

    def _begin(self, scenarios: range) -> Wave:
        split = WorkSplit(len(scenarios), self._comm.size)
        if self._common is not None and self._folder is not None:
            blocks = [scenarios[split.block(rank).start : split.block(rank).stop] for rank in range(self._comm.size)]
            return FileWave(self._comm.rank, blocks, self._extractors, self._folder, self._common)
        file = None if self._folder is None or self._comm.rank else _nameless_file(self._folder)
        return CollectedWave(self._collector, split, Spool(scenarios, self._extractors, file))

    def close(self) -> None:
        """Release the shared memory."""
        self._collector.close()


def _nameless_file(folder: Path) -> BinaryIO:
    return tempfile.TemporaryFile(dir=folder, buffering=0)
