"""Results of some scenarios until their last stage is known: added stage by stage, read table by table.

Stages are solved one after the other for all scenarios, and tables are written scenario after scenario. The numbers in
between grow with the study, so a spool may keep them in a file; memory then holds one column at a time
(docs/explanation/memory.md).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import BinaryIO, Protocol

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.sddp.simulation.stage_rows import StageExtractor, TableLayout

BYTES_PER_CHUNK = 64 << 20
BYTES_PER_STAGE = 2 << 20
MAX_SCENARIOS = 256
MIN_SCENARIOS = 16
MIN_PER_RANK = 4


def scenarios_per_chunk(extractors: tuple[StageExtractor, ...]) -> int:
    """Return the number of scenarios that a sink gets at once. Independent of ranks, so digests are, too."""
    bytes_per_scenario = 8 * sum(extractor.width for extractor in extractors)
    return min(MAX_SCENARIOS, max(MIN_SCENARIOS, BYTES_PER_CHUNK // max(1, bytes_per_scenario)))


def scenarios_per_wave(extractors: tuple[StageExtractor, ...], chunk: int, ranks: int) -> int:
    """Return the number of scenarios simulated at once: memory grows with it, and every rank should have some."""
    bytes_per_scenario = 8 * max(extractor.width for extractor in extractors)
    fitting = max(MIN_SCENARIOS, BYTES_PER_STAGE // max(1, bytes_per_scenario))
    return max(MIN_PER_RANK * (ranks - 1), min(chunk, fitting))  # a single rank has all of them anyway


class StoredNumbers(Protocol):
    """Numbers of consecutive scenarios in all stages."""

    @property
    def scenarios(self) -> range:
        """The scenarios whose numbers are stored."""

    def numbers(self, scenarios: range, stage: int, at: int, rows: int) -> Floats:
        """Return part of a column: scenarios x `rows`. at: numbers of the stage that come before it."""


class Spool:
    """Numbers of consecutive scenarios, by stage; within a stage column after column.

    file: their file, perhaps written by another process; None: they stay in memory.
    """

    def __init__(self, scenarios: range, extractors: tuple[StageExtractor, ...], file: BinaryIO | None) -> None:
        self.scenarios = scenarios
        self._extractors = extractors
        self._file = file
        self._kept: list[Floats] = []
        self._starts = [0, *accumulate(len(scenarios) * extractor.width for extractor in extractors)]
        self._stage = 0

    def add_stage(self, numbers: Floats) -> None:
        """Add all scenarios' numbers of the next stage: scenarios x width, each table column after column."""
        extractor = self._extractors[self._stage]
        for _, part in extractor.split(numbers):
            for column in range(part.shape[1]):
                self._keep(part[:, column].flatten())  # a copy, of one column at a time
        self._stage += 1

    def _keep(self, part: Floats) -> None:
        if self._file is None:
            self._kept.append(part)
            return
        unwritten = part.data.cast("B")
        while unwritten:
            unwritten = unwritten[self._file.write(unwritten) :]

    def numbers(self, scenarios: range, stage: int, at: int, rows: int) -> Floats:
        """Return part of a column: scenarios x `rows`. at: numbers of the stage that come before it."""
        before = scenarios.start - self.scenarios.start
        start = self._starts[stage] + len(self.scenarios) * at + before * rows
        return self._read(start, len(scenarios) * rows).reshape(len(scenarios), rows)

    def _read(self, start: int, count: int) -> Floats:
        if self._file is not None:
            return np.frombuffer(os.pread(self._file.fileno(), 8 * count, 8 * start))
        return self._joined[start : start + count]

    @property
    def _joined(self) -> Floats:
        if len(self._kept) > 1:
            self._kept = [np.concatenate(self._kept)]
        return self._kept[0]

    def close(self) -> None:
        """Release the numbers; others can then read those in a file."""
        self._kept = []
        if self._file is not None:
            self._file.close()


class JoinedNumbers:
    """Numbers of consecutive scenarios, one part after the other, as if they were one."""

    def __init__(self, parts: Sequence[StoredNumbers]) -> None:
        self._parts = parts
        self.scenarios = range(parts[0].scenarios.start, parts[-1].scenarios.stop)

    def numbers(self, scenarios: range, stage: int, at: int, rows: int) -> Floats:
        """Return part of a column: scenarios x `rows`. at: numbers of the stage that come before it."""
        common = [(part, _overlap(part.scenarios, scenarios)) for part in self._parts]
        return np.concatenate([part.numbers(shared, stage, at, rows) for part, shared in common if shared])


def _overlap(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


class ScenarioColumns(Mapping[str, Ints | Floats]):
    """A table's columns for some scenarios of a spool; each is read when it is asked for."""

    def __init__(self, spool: StoredNumbers, layout: TableLayout, scenarios: range) -> None:
        self._spool = spool
        self._layout = layout
        self.scenarios = scenarios
        self._names = ("scenario_id", *layout.id_names, *layout.names)

    @property
    def rows_per_scenario(self) -> int:
        """Rows of each scenario, equally many in all."""
        return self._layout.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Ints | Floats:
        count = len(self.scenarios)
        if name == "scenario_id":
            return np.repeat(np.array(self.scenarios, np.int32), self._layout.rows)
        if name in self._layout.id_names:
            return np.tile(self._layout.ids(name), count)
        return self._numbers(self._layout.names.index(name), count)

    def _numbers(self, column: int, count: int) -> Floats:
        table = np.empty((count, self._layout.rows))
        row = 0
        for stage, at, rows in self._layout.parts:
            table[:, row : row + rows] = self._spool.numbers(self.scenarios, stage, at + column * rows, rows)
            row += rows
        return table.reshape(-1)

    def pieces(self, rows: int) -> Iterator["ScenarioColumns"]:
        """Yield the same rows in pieces of whole scenarios, of at most `rows` rows unless a scenario has more."""
        step = max(1, rows // max(1, self._layout.rows))
        for first in range(self.scenarios.start, self.scenarios.stop, step):
            part = range(first, min(first + step, self.scenarios.stop))
            yield ScenarioColumns(self._spool, self._layout, part)


class Sink(Protocol):
    """Receives the rows of a simulation; called only on rank 0."""

    def write(self, table: str, columns: ScenarioColumns) -> None:
        """Take rows of a table; rows of later scenarios come after those of earlier ones.

        Columns may be read from a file when they are asked for: take them one by one, before the call returns.
        """

    def scenarios_done(self, costs: Floats) -> None:
        """Note that all rows of the first len(costs) scenarios have arrived. costs: by scenario, $."""
