"""The rows of a wave on the way to rank 0: brought there stage by stage, or left in files that it reads at the end."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.core.arrays import Floats
from cobre.io.storage.atomic import on_failure
from cobre.sddp.ranks.visibility import count_sharing_memory
from cobre.sddp.ranks.work_split import WorkSplit
from cobre.sddp.simulation.collect import Collector
from cobre.sddp.simulation.common_folder import CommonFolder, find_common_folder
from cobre.sddp.simulation.extract import StageExtractor
from cobre.sddp.simulation.spool import JoinedNumbers, Spool, StoredNumbers

Extractors = tuple[StageExtractor, ...]


class Wave(Protocol):
    """Consecutive scenarios that are simulated side by side."""

    def add_stage(self, numbers: Floats) -> None:
        """This rank's numbers of the next stage; every rank must add every stage."""

    def end(self) -> None:
        """Called when all stages have been added."""

    def numbers(self) -> StoredNumbers:
        """The numbers of all scenarios, on rank 0, after every rank has called `end`."""

    def close(self) -> None:
        """Release memory and files."""

    def abandon(self) -> None:
        """After a failure: leave nothing behind."""


class CollectedWave:
    """Each stage's numbers are brought to rank 0, which keeps them."""

    def __init__(self, collector: Collector, split: WorkSplit, spool: Spool) -> None:
        self._collector = collector
        self._split = split
        self._spool = spool
        self._stage = 0

    def add_stage(self, numbers: Floats) -> None:
        """This rank's numbers of the next stage; every rank must add every stage."""
        self._collector.collect(self._split, numbers, f"results of stage {self._stage}", self._spool.add_stage)
        self._stage += 1

    def end(self) -> None:
        """Does nothing: rank 0 has everything already."""

    def numbers(self) -> StoredNumbers:
        """The numbers of all scenarios, on rank 0."""
        return self._spool

    def close(self) -> None:
        """Release memory and files."""
        self._spool.close()

    def abandon(self) -> None:
        """After a failure: files without a name go with the process."""
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
        """This rank's numbers of the next stage."""
        self._own.add_stage(numbers)

    def end(self) -> None:
        """All stages were added; files are closed, so that rank 0 finds all of them wherever it runs."""
        if self._rank != 0:
            self._own.close()

    def numbers(self) -> StoredNumbers:
        """The numbers of all scenarios, on rank 0, after every rank has called `end`."""
        others = [(rank, block) for rank, block in enumerate(self._blocks) if rank and block]
        self._others = [Spool(block, self._extractors, self._common.take(rank, block.start)) for rank, block in others]
        return JoinedNumbers([self._own, *self._others])

    def close(self) -> None:
        """Close all files."""
        for spool in (self._own, *self._others):
            spool.close()

    def abandon(self) -> None:
        """After a failure: this rank's file goes."""
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
            blocks = [_part(scenarios, split.block(rank)) for rank in range(self._comm.size)]
            return FileWave(self._comm.rank, blocks, self._extractors, self._folder, self._common)
        file = None if self._folder is None or self._comm.rank else _nameless_file(self._folder)
        return CollectedWave(self._collector, split, Spool(scenarios, self._extractors, file))

    def close(self) -> None:
        """Release the shared memory."""
        self._collector.close()


def _nameless_file(folder: Path) -> BinaryIO:
    return tempfile.TemporaryFile(dir=folder, buffering=0)


def _part(scenarios: range, block: range) -> range:
    return scenarios[block.start : block.stop]
