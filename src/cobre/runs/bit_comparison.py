"""Two runs, compared to the last bit: identical, or the first difference.

First means first in time: the paths of an iteration, then its cuts from the last stage to the first, then its lower
bound, then the next iteration; what is only known at the end, and the simulation, comes after all iterations.
"""

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.file_names import CONVERGENCE, POLICY_FILE
from cobre.io.case_folder.case_files import differing_files
from cobre.io.output.results import RowsInMemory, RowSource, paired_pieces
from cobre.io.policies.policy_file import PolicyData, StageCuts
from cobre.records import dataclass
from cobre.runs.content import RunContent, column_values, read_run_content
from cobre.runs.labels import KEYS

if TYPE_CHECKING:
    import pyarrow as pa

_FORWARD, _BACKWARD, _BOUND = range(3)
_AT_THE_END = 10**9  # later than any iteration
_OF_FORWARD_PASS = ("upper_bound", "upper_bound_std", "upper_bound_half_width", "forward_passes")
_NAMED_LATE = ("seeds", "iterations", "facts")  # numbers that differ say more than the seed that made them

Candidate = tuple[tuple[int, ...], "Difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A location in two runs, and what each has there; None: nothing."""

    part: str
    location: Mapping[str, Any]
    first: Any
    second: Any

    def __str__(self) -> str:
        where = ", ".join(str(value) if name == "entry" else f"{name} {value}" for name, value in self.location.items())
        return f"{self.part}: {where}: {_shown(self.first)} and {_shown(self.second)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cobre compare --json` prints."""
        return {
            "part": self.part,
            "place": dict(self.location),
            "first": _json_value(self.first),
            "second": _json_value(self.second),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """`digests` are over all results, the first run's first; `notes` say how settings and programs differ."""

    digests: tuple[str, str]
    difference: Difference | None
    notes: tuple[str, ...] = ()

    @property
    def is_identical(self) -> bool:
        """Whether the results of both runs have the same bits."""
        return self.difference is None

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cobre compare --json` prints."""
        difference = None if self.difference is None else self.difference.as_dict()
        return {
            "identical": self.is_identical,
            "digests": list(self.digests),
            "difference": difference,
            "notes": list(self.notes),
        }


def compare_runs(first: Path | str, second: Path | str) -> Comparison:
    """Compare the output directories of two runs. Raises IncompleteRunError."""
    a, b = read_run_content(Path(first)), read_run_content(Path(second))
    digests = (a.digest, b.digest)
    if digests[0] == digests[1]:
        return Comparison(digests, None)
    _, difference = min(_candidates(a, b), key=lambda candidate: candidate[0])
    return Comparison(digests, difference, tuple(_notes(a, b)))


def _candidates(a: RunContent, b: RunContent) -> Iterator[Candidate]:
    """Yield a first difference of each part, with its time."""
    if a.policy is not None and b.policy is not None:
        yield from _problem(a.policy, b.policy)
        yield from _cuts(a.policy, b.policy)
        yield from _policy_end(a.policy, b.policy)
    elif a.policy is not b.policy:
        yield (_AT_THE_END, 1), _presence("policy", {"file": POLICY_FILE}, a.policy, b.policy)
    if a.bounds is not None and b.bounds is not None:
        yield from _bounds(a.bounds, b.bounds)
    elif a.bounds is not b.bounds:
        yield (_AT_THE_END, 0), _presence("bounds", {"table": CONVERGENCE}, a.bounds, b.bounds)
    yield from _simulation(a.tables, b.tables)
    # Whatever the digests see and the above does not: an order in the file, or a type.
    yield (_AT_THE_END, 9), Difference("files", {"digest of": "all results"}, a.digest, b.digest)


def _presence(part: str, location: Mapping[str, Any], first: object, second: object) -> Difference:
    return Difference(part, location, *(None if one is None else "there" for one in (first, second)))


def _problem(a: PolicyData, b: PolicyData) -> Iterator[Candidate]:
    """Compare states and stages, which differ before the first iteration if the problem does."""
    yield from _metadata(a, b, (-1,), is_end=False)
    if len(a.stages) != len(b.stages):
        yield (-1,), Difference("policy", {"metadata": "number of stages"}, len(a.stages), len(b.stages))


def _policy_end(a: PolicyData, b: PolicyData) -> Iterator[Candidate]:
    yield from _metadata(a, b, (_AT_THE_END, 3), is_end=True)


def _metadata(a: PolicyData, b: PolicyData, time: tuple[int, ...], *, is_end: bool) -> Iterator[Candidate]:
    metadata_a, metadata_b = asdict(a.metadata), asdict(b.metadata)
    for name in metadata_a:
        if (name in _NAMED_LATE) is is_end:
            pairs = _leaves(name, metadata_a[name], metadata_b[name])
            yield from ((time, Difference("policy", {"metadata": key}, x, y)) for key, x, y in pairs)


def _leaves(key: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the entries of nested mappings that differ: dotted key and both values."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in dict.fromkeys((*a, *b)):
            yield from _leaves(f"{key}.{name}", a.get(name), b.get(name))
    elif a != b and not _are_both_nan(a, b):
        yield key, a, b


def _cuts(a: PolicyData, b: PolicyData) -> Iterator[Candidate]:
    for stage, (cuts_a, cuts_b) in enumerate(zip(a.stages, b.stages, strict=False)):
        stage_id = a.metadata.stage_ids[stage]
        count = min(len(cuts_a.intercepts), len(cuts_b.intercepts))
        if cuts_a.coefficients.shape[1] == cuts_b.coefficients.shape[1]:
            yield from _numbers(cuts_a, cuts_b, count, stage, stage_id, a.metadata.state_names)
        yield from _flags(cuts_a, cuts_b, count, stage, stage_id)
        if len(cuts_a.intercepts) != len(cuts_b.intercepts):
            location = {"stage": stage_id, "entry": "number of cuts"}
            yield (
                (_AT_THE_END, 1, stage),
                Difference("cuts", location, len(cuts_a.intercepts), len(cuts_b.intercepts)),
            )


def _numbers(
    a: StageCuts, b: StageCuts, count: int, stage: int, stage_id: int, names: tuple[str, ...]
) -> Iterator[Candidate]:
    """Find the first cut of a stage, in time, that has another number."""
    rows_a, rows_b = _rows(a, count), _rows(b, count)
    slots, components = np.nonzero(rows_a.view(np.uint64) != rows_b.view(np.uint64))
    if not len(slots):
        return
    first = min(range(len(slots)), key=lambda at: (a.iteration[slots[at]], slots[at], components[at]))
    slot, component = int(slots[first]), int(components[first])
    iteration = int(a.iteration[slot])
    location = {
        "iteration": iteration,
        "stage": stage_id,
        "cut": slot,
        "forward pass": int(a.forward_pass[slot]),
        "component": ("intercept", *names)[component],
    }
    difference = Difference("cuts", location, float(rows_a[slot, component]), float(rows_b[slot, component]))
    yield (iteration, _BACKWARD, -stage, slot, component), difference


def _rows(cuts: StageCuts, count: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.column_stack([cuts.intercepts, cuts.coefficients])[:count], np.float64)


def _flags(a: StageCuts, b: StageCuts, count: int, stage: int, stage_id: int) -> Iterator[Candidate]:
    """Yield differences in the origin of cuts, and in which of them are active."""
    for order, name in enumerate(("iteration", "forward_pass", "is_active")):
        flags_a, flags_b = getattr(a, name)[:count], getattr(b, name)[:count]
        if len(slots := np.nonzero(flags_a != flags_b)[0]):
            slot = int(slots[0])
            location = {"iteration": int(a.iteration[slot]), "stage": stage_id, "cut": slot, "entry": name}
            yield (_AT_THE_END, 2, stage, order), Difference("cuts", location, int(flags_a[slot]), int(flags_b[slot]))


def _bounds(a: "pa.Table", b: "pa.Table") -> Iterator[Candidate]:
    """Yield the first iteration that has another number, by each column."""
    iterations = a.column("iteration").to_pylist()
    rows_a, rows_b = RowsInMemory(a), RowsInMemory(b)
    for order, column in enumerate(a.column_names):
        if column in b.column_names and (difference := _first_row(rows_a, rows_b, column)):
            row, first, second = difference
            phase = _FORWARD if column in _OF_FORWARD_PASS else _BOUND
            location = {"iteration": iterations[row], "column": column}
            yield (iterations[row], phase, order), Difference("bounds", location, first, second)
    yield from _shape("bounds", {}, rows_a, rows_b, (_AT_THE_END, 0))


def _simulation(a: Mapping[str, RowSource], b: Mapping[str, RowSource]) -> Iterator[Candidate]:
    for number, name in enumerate(sorted({*a, *b})):
        if name not in a or name not in b:
            yield (
                (_AT_THE_END, 5, number),
                _presence("simulation", {"table": name}, a.get(name), b.get(name)),
            )
            continue
        for order, column in enumerate(a[name].schema.names):
            if column in b[name].schema.names and (difference := _first_row(a[name], b[name], column)):
                row, first, second = difference
                location = {"table": name, "row": row, **_keys(a[name], row), "column": column}
                yield (_AT_THE_END, 4, number, row, order), Difference("simulation", location, first, second)
        yield from _shape("simulation", {"table": name}, a[name], b[name], (_AT_THE_END, 5, number))


def _shape(
    part: str, location: Mapping[str, Any], a: RowSource, b: RowSource, time: tuple[int, ...]
) -> Iterator[Candidate]:
    if a.schema.names != b.schema.names:
        yield time, Difference(part, {**location, "entry": "columns"}, a.schema.names, b.schema.names)
    if a.rows != b.rows:
        unit = "rows" if location else "iterations"
        yield time, Difference(part, {**location, "entry": f"number of {unit}"}, a.rows, b.rows)


def _first_row(a: RowSource, b: RowSource, column: str) -> tuple[int, Any, Any] | None:
    """Find the first row, of those that both tables have, with another value in a column."""
    for start, piece_a, piece_b in paired_pieces(a, b, column):
        difference = _first_of_piece(piece_a, piece_b)
        if difference is not None:
            return start + difference[0], *difference[1:]
    return None


def _first_of_piece(a: "pa.ChunkedArray", b: "pa.ChunkedArray") -> tuple[int, Any, Any] | None:
    (values_a, is_present_a), (values_b, is_present_b) = (column_values(values) for values in (a, b))
    if values_a.dtype.kind != values_b.dtype.kind:
        return 0, str(values_a.dtype), str(values_b.dtype)
    is_other = (_bits(values_a) != _bits(values_b)) | (is_present_a != is_present_b)
    rows = np.nonzero(is_other)[0]
    if not len(rows):
        return None
    row = int(rows[0])
    values = ((values_a, is_present_a), (values_b, is_present_b))
    first, second = (array[row].item() if there[row] else None for array, there in values)
    return row, first, second


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as bits: NaN equals NaN, and 0 differs from -0."""
    return values.view(np.uint64) if values.dtype == np.float64 else values


def _keys(table: RowSource, row: int) -> dict[str, Any]:
    """Return the keys of a row: its scenario, its stage, its entity."""
    names = [name for name in table.schema.names if name in KEYS or name.endswith("_id")]
    for piece in table.pieces(names):
        if row < piece.num_rows:
            return {name: piece.column(name)[row].as_py() for name in names}
        row -= piece.num_rows
    return {}


def _notes(a: RunContent, b: RunContent) -> Iterator[str]:
    """Yield settings and versions that may be the reason."""
    for name in ("name", "versions", "config"):
        for key, value_a, value_b in _leaves(name, a.study.get(name), b.study.get(name)):
            yield f"{key}: {_setting(value_a)} and {_setting(value_b)}"
    files = [digests for run in (a, b) if isinstance(digests := run.study.get("case_files"), dict) and digests]
    if len(files) == 2 and (names := differing_files(*files)):
        yield f"files of the case that differ: {', '.join(names)}"


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _are_both_nan(a: object, b: object) -> bool:
    values = (a, b)
    return all(isinstance(value, float) and math.isnan(value) for value in values)


def _hex(value: float) -> str:
    return f"nan:{struct.pack('>d', value).hex()}" if math.isnan(value) else value.hex()


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"{_hex(value)} ({value!r})" if isinstance(value, float) else str(value)


def _json_value(value: Any) -> Any:
    if not isinstance(value, float):
        return {"value": value}
    return {"value": value if math.isfinite(value) else None, "hex": _hex(value)}
