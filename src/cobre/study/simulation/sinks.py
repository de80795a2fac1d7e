"""Sinks for the rows of a simulation: memory, or files that grow while scenarios are simulated.

Both digest all rows on their way, and both remember the costs of stages for the controlled mean.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.core.case import ABSENT_ID
from cobre.io.output.growing_tables import ROWS_PER_GROUP, GrowingTables, Segment
from cobre.io.storage.allocators import trim_heap
from cobre.io.storage.arrow_columns import column_of
from cobre.sddp.simulation.controlled_costs import MAX_VALUES
from cobre.sddp.simulation.cost_tables import COSTS
from cobre.sddp.simulation.spool import ScenarioColumns

if TYPE_CHECKING:
    import pyarrow as pa


ROWS_PER_DIGEST = 4 * ROWS_PER_GROUP  # in memory at once, of one column
SECONDS_PER_SEGMENT = 120.0  # lost at most if a simulation is killed, besides the scenarios in progress


class RowDigest:
    """SHA-256 over all rows: chunk by chunk, table by table, column by column."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def feed(self, table: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add all columns of a chunk of rows."""
        for name, values in columns.items():
            self.feed_column(table, name, values)

    def feed_column(self, table: str, name: str, values: NDArray[Any]) -> None:
        """Add one column of a chunk of rows."""
        self.feed_pieces(table, name, (values,))

    def feed_pieces(self, table: str, name: str, pieces: Iterable[NDArray[Any]]) -> None:
        """Add one column of a chunk of rows, given in pieces, one after the other."""
        self._digest.update(f"{table}.{name}".encode())
        for values in pieces:
            self._digest.update(np.ascontiguousarray(values).data)

    def hexdigest(self) -> str:
        """Return the digest of everything added so far, in hexadecimal."""
        return self._digest.hexdigest()


class StageCosts:
    """Total and future cost of all stages and scenarios, collected from rows on their way to a sink."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Floats]] = {"total_cost": [], "future_cost": []}
        self._values = 0

    def add(self, table: str, name: str, values: NDArray[Any]) -> None:
        """Collect a column of some scenarios if it is one of the two; nothing beyond `MAX_VALUES`."""
        if table != COSTS.name or name not in self._chunks or self._values > MAX_VALUES:
            return
        self._values += len(values) if name == "total_cost" else 0
        self._chunks[name].append(np.array(values, np.float64))

    def by_stage(self, scenarios: int) -> tuple[Floats, Floats] | None:
        """Return both as stages x scenarios, $ of the stage's money; None if not all scenarios were collected."""
        total, future = (np.concatenate([np.zeros(0), *chunks]) for chunks in self._chunks.values())
        if self._values > MAX_VALUES or not len(total) or len(total) % scenarios:
            return None
        return total.reshape(scenarios, -1).T, future.reshape(scenarios, -1).T


class ArrowSink:
    """A sink that keeps all rows in memory, for scripts."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.Table]] = {}
        self._digest = RowDigest()
        self.stage_costs = StageCosts()

    def write(self, table: str, columns: ScenarioColumns) -> None:
        """Keep rows of a table, and add them to the digest."""
        self._digest.feed(table, columns)
        for name in columns if table == COSTS.name else ():
            self.stage_costs.add(table, name, columns[name])
        self._batches.setdefault(table, []).append(_arrow_table(columns))

    def scenarios_done(self, costs: Floats) -> None:
        """Do nothing: rows in memory need no closing of segments."""

    @property
    def digest(self) -> str:
        """The digest of all rows."""
        return self._digest.hexdigest()

    def tables(self) -> dict[str, "pa.Table"]:
        """Return all rows as Arrow tables, by name."""
        import pyarrow as pa

        return {name: pa.concat_tables(batches).combine_chunks() for name, batches in sorted(self._batches.items())}


class StreamingSink:
    """A sink that writes rows to files as they arrive; closed segments are not simulated again."""

    def __init__(self, tables: GrowingTables, seconds_per_segment: float = SECONDS_PER_SEGMENT) -> None:
        self._tables = tables
        self._digest = RowDigest()
        self._seconds_per_segment = seconds_per_segment
        self._closed_at = time.monotonic()
        self._rows: dict[str, int] = {}  # by table, in the order of the digest: rows of one scenario
        self._chunk = 0
        self._is_open = False
        self.stage_costs = StageCosts()
        self.done = self._restore_segments()  # costs of the scenarios in closed segments

    @property
    def digest(self) -> str:
        """The digest of all rows, of this run and of those that it resumes."""
        return self._digest.hexdigest()

    def write(self, table: str, columns: ScenarioColumns) -> None:
        """Write rows of a table to its file, and add them to the digest."""
        for name in columns:
            self._digest.feed_pieces(table, name, self._collect_costs(table, name, columns))
        self._rows.setdefault(table, columns.rows_per_scenario)
        self._chunk = max(self._chunk, len(columns.scenarios))
        self._is_open = True
        for piece in columns.pieces(ROWS_PER_GROUP):
            self._tables.append(table, _arrow_table(piece))

    def _collect_costs(self, table: str, name: str, columns: ScenarioColumns) -> Iterator[NDArray[Any]]:
        """Yield a column in pieces, and collect the costs of stages from them."""
        for piece in columns.pieces(ROWS_PER_DIGEST):
            values = piece[name]
            self.stage_costs.add(table, name, values)
            yield values

    def scenarios_done(self, costs: Floats) -> None:
        """Close a segment when the last one is old enough, or when it takes too much memory to remember."""
        if time.monotonic() - self._closed_at >= self._seconds_per_segment or self._tables.exceeds_memory_limit:
            self.close(costs)
        trim_heap()

    def close(self, costs: Floats) -> None:
        """Close the open segment, so that all rows received are on the disk. costs: of all scenarios received."""
        if self._is_open:
            self._tables.close_segment({"costs": costs.tolist(), "chunk": self._chunk, "rows": self._rows})
            self._closed_at = time.monotonic()
            self._is_open = False

    def publish(self, costs: Floats, others: "Mapping[str, pa.Table]") -> None:
        """Publish complete results; `others` are tables that accompany those of the simulation."""
        self.close(costs)
        self._tables.publish(others, {"digest": self.digest})

    def _restore_segments(self) -> Floats:
        """Digest the rows of closed segments; return the costs of their scenarios."""
        first = 0
        for segment in self._tables.segments:
            record = segment.record
            self._rows, self._chunk = dict(record["rows"]), int(record["chunk"])
            last = len(record["costs"])
            self._digest_segment(segment, last - first)
            first = last
        return np.array(self._tables.segments[-1].record["costs"] if self._tables.segments else [], np.float64)

    def _digest_segment(self, segment: Segment, scenarios: int) -> None:
        files = {name: segment.rows(name) for name in self._rows}
        for start in range(0, scenarios, self._chunk):
            stop = min(start + self._chunk, scenarios)
            for table, rows in self._rows.items():
                for name in files[table].schema.names:
                    column = files[table].column(name, start * rows, stop * rows)
                    self._digest.feed_column(table, name, _numpy(column))
                    self.stage_costs.add(table, name, _numpy(column))


def _arrow_table(columns: Mapping[str, NDArray[Any]]) -> "pa.Table":
    import pyarrow as pa

    return pa.table({name: _arrow(name, values) for name, values in columns.items()})


def _arrow(name: str, values: NDArray[Any]) -> "pa.Array":
    import pyarrow as pa

    if name == "block_id":
        return column_of(values, pa.int32(), values == ABSENT_ID)
    return column_of(values)


def _numpy(column: "pa.ChunkedArray") -> NDArray[Any]:
    """Convert a column back to NumPy; the inverse of `_arrow`."""
    filled = column.fill_null(ABSENT_ID) if column.null_count else column
    return np.concatenate([np.asarray(chunk) for chunk in filled.chunks]) if filled.num_chunks else np.zeros(0)
