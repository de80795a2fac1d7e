"""Results of some scenarios until their last stage is known: stage by stage as they come, by table as they are written.

Stages come one after the other with all scenarios side by side, and tables want scenario after scenario. What lies
between the two grows with the study, so a spool may keep it in a file; memory then holds one column at a time.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.core.stage_data import Floats
from cobre.sddp.simulation.extract import StageExtractor
from cobre.sddp.simulation.tables import StageRows
from cobre.solver.program import Ints

BYTES_PER_CHUNK = 64 << 20
MOST_SCENARIOS = 256
FEWEST_SCENARIOS = 16


def scenarios_per_chunk(extractors: tuple[StageExtractor, ...]) -> int:
    """How many scenarios a sink gets at once. It depends on the study alone, so that digests do not depend on ranks."""
    bytes_per_scenario = 8 * sum(extractor.width for extractor in extractors)
    return min(MOST_SCENARIOS, max(FEWEST_SCENARIOS, BYTES_PER_CHUNK // max(1, bytes_per_scenario)))


class TableLayout:
    """Where a table's rows lie among the numbers of each stage."""

    def __init__(self, first: StageRows) -> None:
        self.names = first.format.numbers
        self.parts: list[tuple[int, int, int]] = []  # stage, where its rows begin among a scenario's numbers, how many
        self._ids: dict[str, list[Ints]] = {name: [] for name in ("stage_id", "block_id", *first.format.ids)}

    def add(self, stage: int, stage_id: int, at: int, rows: StageRows) -> None:
        """Rows of one more stage."""
        self.parts.append((stage, at, rows.count))
        for name, columns in self._ids.items():
            columns.append(np.full(rows.count, stage_id, np.int32) if name == "stage_id" else rows.ids[name])

    @property
    def rows(self) -> int:
        """Of one scenario, over all stages."""
        return sum(count for _, _, count in self.parts)

    @property
    def id_names(self) -> tuple[str, ...]:
        """Columns that are the same in every scenario."""
        return tuple(self._ids)

    def ids(self, name: str) -> Ints:
        """Of one scenario's rows."""
        return np.concatenate(self._ids[name])


def table_layouts(extractors: tuple[StageExtractor, ...]) -> dict[str, TableLayout]:
    """By table, in the order in which tables first occur."""
    layouts: dict[str, TableLayout] = {}
    for stage, extractor in enumerate(extractors):
        at = 0
        for rows in extractor.rows:
            layouts.setdefault(rows.format.name, TableLayout(rows)).add(stage, extractor.stage_id, at, rows)
            at += rows.width
    return layouts


class Spool:
    """Numbers of consecutive scenarios, by stage; within a stage column after column.

    folder: where a file without a name takes them; None: they stay in memory.
    """

    def __init__(self, scenarios: range, extractors: tuple[StageExtractor, ...], folder: Path | None) -> None:
        self.scenarios = scenarios
        self._extractors = extractors
        self._file = None if folder is None else tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        self._stages: list[Floats] = []
        self._starts = [0]

    def add_stage(self, numbers: Floats) -> None:
        """All scenarios' numbers of the next stage: scenarios x width, each table column after column."""
        extractor = self._extractors[len(self._starts) - 1]
        for _, part in extractor.split(numbers):
            for column in range(part.shape[1]):
                self._keep(part[:, column].flatten())  # a copy, of one column at a time
        self._starts.append(self._starts[-1] + numbers.size)

    def _keep(self, part: Floats) -> None:
        if self._file is None:
            self._stages.append(part)
            return
        left = part.data.cast("B")
        while left:
            left = left[self._file.write(left) :]

    def read(self, stage: int, at: int, count: int) -> Floats:
        """`count` numbers of a stage, from the place `at` on."""
        start = self._starts[stage] + at
        if self._file is not None:
            return np.frombuffer(os.pread(self._file.fileno(), 8 * count, 8 * start))
        return self._whole[start : start + count]

    @property
    def _whole(self) -> Floats:
        if len(self._stages) > 1:
            self._stages = [np.concatenate(self._stages)]
        return self._stages[0]

    def close(self) -> None:
        """Let go of the numbers."""
        self._stages = []
        if self._file is not None:
            self._file.close()


class ScenarioColumns(Mapping[str, NDArray[np.int32] | Floats]):
    """A table's columns for some scenarios of a spool; each is read when it is asked for."""

    def __init__(self, spool: Spool, layout: TableLayout, scenarios: range) -> None:
        self._spool = spool
        self._layout = layout
        self.scenarios = scenarios
        self._names = ("scenario_id", *layout.id_names, *layout.names)

    @property
    def rows_per_scenario(self) -> int:
        """The same for all scenarios."""
        return self._layout.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> NDArray[np.int32] | Floats:
        count = len(self.scenarios)
        if name == "scenario_id":
            return np.repeat(np.array(self.scenarios, np.int32), self._layout.rows)
        if name in self._layout.id_names:
            return np.tile(self._layout.ids(name), count)
        return self._numbers(self._layout.names.index(name), count)

    def _numbers(self, column: int, count: int) -> Floats:
        table = np.empty((count, self._layout.rows))
        before, side_by_side, row = self.scenarios.start - self._spool.scenarios.start, len(self._spool.scenarios), 0
        for stage, at, rows in self._layout.parts:
            place = side_by_side * (at + column * rows) + before * rows
            table[:, row : row + rows] = self._spool.read(stage, place, count * rows).reshape(count, rows)
            row += rows
        return table.reshape(-1)

    def pieces(self, rows: int) -> Iterator["ScenarioColumns"]:
        """The same rows in pieces of whole scenarios, of at most so many rows where a scenario has no more."""
        step = max(1, rows // max(1, self._layout.rows))
        for first in range(self.scenarios.start, self.scenarios.stop, step):
            part = range(first, min(first + step, self.scenarios.stop))
            yield ScenarioColumns(self._spool, self._layout, part)


class Sink(Protocol):
    """Where results go. Called on rank 0 alone."""

    def write(self, table: str, columns: ScenarioColumns) -> None:
        """Take rows of a table; rows of later scenarios come after those of earlier ones.

        Columns may be read from a file when they are asked for: take them one by one, before the call returns.
        """

    def scenarios_done(self, costs: Floats) -> None:
        """All rows of the first len(costs) scenarios have come; costs: what each of them costs in $."""
