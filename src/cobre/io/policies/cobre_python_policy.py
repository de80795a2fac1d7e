"""Policies of cobre-python (format 3) and novomodelo (format 4): POLICY/manifest.bin, and POLICY/cuts/NNN.bin by stage.

They are FlatBuffers tables. Cuts are in $ in format 3, and in units of their file's cost_scale_factor in format 4.
Bases and visited states are not read: our simulations do not need them.
"""

import math
import struct
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.stage_data import COMMITMENT, IN_TRANSIT
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName, entity_ids
from cobre.errors import CobreError
from cobre.io.policies.policy_file import PolicyData, PolicyFileError, PolicyMetadata, StageCuts
from cobre.io.storage.confined import MAX_BYTES, read_untrusted
from cobre.limits import MAX_NUMBER
from cobre.records import dataclass

# Reader of FlatBuffers tables, field by field.
#
# A table begins with the distance back to its vtable: its bytes, the table's bytes, and for every field the distance
# from the table, 0 when it is absent. Vectors and tables are referenced by offsets. Everything is little-endian.
# Offsets are checked: one outside of the content raises `FlatTableError`.

_OFFSET, _BACK, _SHORT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


class FlatTableError(CobreError, ValueError):
    """Bytes that are not a valid FlatBuffers table."""


@dataclass(frozen=True, slots=True)
class FlatTable:
    """A table at the offset `at` of the content; fields are identified by their numbers."""

    content: bytes
    at: int

    @classmethod
    def root(cls, content: bytes, identifier: bytes) -> "FlatTable":
        """Return the root table of a file with `identifier` in its bytes 4 to 7."""
        if content[4:8] != identifier:
            raise FlatTableError(f"it does not have the identifier {identifier.decode()}")
        return cls(content, _unpack(_OFFSET, content, 0))

    def integer(self, field: int, kind: str = "<i4", default: int = 0) -> int:
        """Return an integer of the NumPy type `kind`; `default` if it is absent."""
        return int(self._scalar(field, kind, default))

    def number(self, field: int) -> float | None:
        """Return a float64; None if it is absent."""
        return None if self._field_offset(field) is None else float(self._scalar(field, "<f8", 0.0))

    def vector(self, field: int, kind: str) -> NDArray[Any]:
        """Return a vector of numbers; empty if it is absent."""
        offset = self._field_offset(field)
        if offset is None:
            return np.zeros(0, kind)
        begin = offset + _unpack(_OFFSET, self.content, offset)
        return _numbers(self.content, kind, begin + 4, _unpack(_OFFSET, self.content, begin))

    def tables(self, field: int) -> list["FlatTable"]:
        """Return a vector of tables: each is stored as an offset relative to its own position."""
        offsets = self.vector(field, "<u4")
        if not len(offsets):
            return []
        offset = self._field_offset(field) or 0
        begin = offset + _unpack(_OFFSET, self.content, offset) + 4
        return [FlatTable(self.content, begin + 4 * index + int(offset)) for index, offset in enumerate(offsets)]

    def _scalar(self, field: int, kind: str, default: float) -> Any:
        offset = self._field_offset(field)
        return default if offset is None else _numbers(self.content, kind, offset, 1)[0]

    def _field_offset(self, field: int) -> int | None:
        vtable = self.at - _unpack(_BACK, self.content, self.at)
        if 4 + 2 * field >= _unpack(_SHORT, self.content, vtable):
            return None
        distance = _unpack(_SHORT, self.content, vtable + 4 + 2 * field)
        return self.at + distance if distance else None


def _numbers(content: bytes, kind: str, begin: int, count: int) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if not 0 <= begin <= len(content) - count * dtype.itemsize:
        raise FlatTableError("an offset points outside the file")
    numbers: NDArray[Any] = np.frombuffer(content, dtype, count, begin)
    return numbers


def _unpack(form: struct.Struct, content: bytes, at: int) -> int:
    if not 0 <= at <= len(content) - form.size:
        raise FlatTableError("an offset points outside the file")
    return int(form.unpack_from(content, at)[0])


IDENTIFIER = b"CBVF"
FORMAT_IN_CURRENCY, FORMAT_IN_UNITS = 3, 4
PROGRAMS = {FORMAT_IN_CURRENCY: "cobre-python", FORMAT_IN_UNITS: "novomodelo"}
NO_DATE = -(2**31)
STATE_KINDS = (STORAGE, INFLOW_LAG, COMMITMENT, IN_TRANSIT)  # indexed by cobre-python's code


class _Manifest:
    """Field numbers of manifest.bin."""

    VERSION, _, _, STAGES, POOLS, NODES, EDGES, ITERATIONS, LOWER_BOUND, UPPER_BOUND = range(10)
    SEED, COST_SCALE = 14, 18


class _Pool:
    """Field numbers of a stage's file."""

    DIMENSION, CUTS, ENTITIES, COST_SCALE, STAGE_ID, PRICED_DATE = 1, 4, 7, 8, 10, 11


class _Cut:
    """Field numbers of a cut in the FlatBuffers schema."""

    SLOT, ITERATION, FORWARD_PASS, INTERCEPT, COEFFICIENTS, IS_ACTIVE = range(1, 7)


class _Entity:
    """Field numbers of an entry of the state."""

    KIND, ID, SUBINDEX, REFERENCE_DATE = 0, 1, 2, 6

    @classmethod
    def of(cls, entity: FlatTable) -> tuple[int, int, int]:
        """Return kind, id and subindex (lag or delivery) of an entry of the state."""
        return entity.integer(cls.KIND, "u1"), entity.integer(cls.ID), entity.integer(cls.SUBINDEX, "<u4")


def read_cobre_python_policy(manifest: Path) -> PolicyData:
    """Return the policy of a manifest.bin. Raises PolicyFileError if it is damaged, incomplete or not for a chain."""
    table = _root(manifest)
    try:
        _check(manifest, table)
        count = table.integer(_Manifest.STAGES, "<u4")
        files = [manifest.parent / "cuts" / f"{stage:03d}.bin" for stage in range(count)]
        pools = [_root(file) for file in files]
        scale = _scale(table, _Manifest.COST_SCALE)
        is_in_units = table.integer(_Manifest.VERSION, "<u4") == FORMAT_IN_UNITS
        divisors = [scale / _scale(pool, _Pool.COST_SCALE) if is_in_units else scale for pool in pools]
        metadata = _metadata(manifest, table, pools, scale)
        cuts = [_cuts(*of_stage) for of_stage in zip(files, pools, divisors, strict=True)]
        names = [_state_names(manifest, pool, stage) for stage, pool in enumerate(pools)]
        return PolicyData(metadata, tuple(map(_like_the_first, cuts, names, [metadata.state_names] * count)))
    except FlatTableError as error:
        raise PolicyFileError(manifest, f"or one of its cut files is damaged: {error}") from error


def _root(file: Path) -> FlatTable:
    try:
        return FlatTable.root(read_untrusted(file, MAX_BYTES), IDENTIFIER)
    except FlatTableError as error:
        raise PolicyFileError(file, f"is not a policy file of cobre-python or novomodelo: {error}") from error
    except OSError as error:
        raise PolicyFileError(file, f"cannot be read: {error.strerror}") from error


def _check(manifest: Path, table: FlatTable) -> None:
    version = table.integer(_Manifest.VERSION, "<u4")
    if version not in PROGRAMS:
        supported = " and ".join(f"{number} ({program})" for number, program in PROGRAMS.items())
        raise PolicyFileError(manifest, f"has format version {version}; versions {supported} can be read")
    stages, pools = (table.integer(field, "<u4") for field in (_Manifest.STAGES, _Manifest.POOLS))
    nodes = [node.integer(0) for node in table.tables(_Manifest.NODES)]
    chain = {(source, target, 1.0) for source, target in pairwise(nodes)}
    edges = {(edge.integer(0), edge.integer(1), edge.number(2)) for edge in table.tables(_Manifest.EDGES)}
    if not stages or not stages == pools == len(nodes) or edges != chain:
        raise PolicyFileError(manifest, "is not for a chain of stages; only those can be read")


def _scale(table: FlatTable, field: int) -> float:
    """Return the divisor from $ to scaled units of cost."""
    scale = table.number(field) or 1.0
    if not 1.0 / MAX_NUMBER <= scale <= MAX_NUMBER:
        raise FlatTableError(f"its cost_scale_factor is {scale}")
    return scale


def _metadata(manifest: Path, table: FlatTable, pools: list[FlatTable], scale: float) -> PolicyMetadata:
    names = [_state_names(manifest, pool, stage) for stage, pool in enumerate(pools)]
    if any(sorted(other) != sorted(names[0]) for other in names):
        raise PolicyFileError(manifest, "has different states in different stages; here all stages share one")
    ends = tuple(_day(pool.integer(_Pool.PRICED_DATE, default=NO_DATE)) for pool in pools)
    return PolicyMetadata(
        state_names=names[0],
        stage_ids=tuple(pool.integer(_Pool.STAGE_ID) for pool in pools),
        stage_start_dates=(_first_day(pools[0]), *ends[:-1]),
        stage_end_dates=ends,
        entity_ids={"hydros": entity_ids(names[0], STORAGE)},
        iterations=table.integer(_Manifest.ITERATIONS, "<u4"),
        seeds={"tree_seed": table.integer(_Manifest.SEED, "<u8")},
        cost_scale=scale,
        facts={
            "lower_bound": _bound(table, _Manifest.LOWER_BOUND),
            "upper_bound": _bound(table, _Manifest.UPPER_BOUND),
        },
    )


def _bound(table: FlatTable, field: int) -> float | None:
    """Return a bound of the policy; None if training found none."""
    value = table.number(field)
    return value if value is not None and math.isfinite(value) else None


def _state_names(manifest: Path, pool: FlatTable, stage: int) -> tuple[str, ...]:
    entities = pool.tables(_Pool.ENTITIES)
    if len(entities) != pool.integer(_Pool.DIMENSION, "<u4"):
        raise PolicyFileError(manifest, "does not describe its states: train the policy again")
    parsed = [_Entity.of(entity) for entity in entities]
    ring = 1 + max((number for kind, _, number in parsed if kind == STATE_KINDS.index(COMMITMENT)), default=0)
    return tuple(_state_name(manifest, stage, ring, *entity) for entity in parsed)


def _state_name(manifest: Path, stage: int, ring: int, kind: int, id_: int, number: int) -> str:
    """Return the name of a state; commitments are in a ring buffer, at the delivery stage modulo its size."""
    if not 0 <= kind < len(STATE_KINDS):
        raise PolicyFileError(manifest, f"has a state of kind {kind}, which is not supported")
    distance = {STORAGE: 0, COMMITMENT: (number - stage - 1) % ring + 1}.get(STATE_KINDS[kind], number)
    return str(StateName(STATE_KINDS[kind], id_, distance))


def _first_day(pool: FlatTable) -> str:
    """Return the first day of the first stage, from the reference date of a lagged inflow; empty without one."""
    days = [
        entity.integer(_Entity.REFERENCE_DATE, default=NO_DATE)
        for entity in pool.tables(_Pool.ENTITIES)
        if entity.integer(_Entity.SUBINDEX, "<u4") == 1
    ]
    return _day(days[0]) if days else ""


def _cuts(file: Path, pool: FlatTable, divisor: float) -> StageCuts:
    """Return the cuts in the order of their slots; the divisor leads from the file's units to ours."""
    cuts = sorted(pool.tables(_Pool.CUTS), key=lambda cut: cut.integer(_Cut.SLOT, "<u4"))
    width = pool.integer(_Pool.DIMENSION, "<u4")
    rows = [cut.vector(_Cut.COEFFICIENTS, "<f8") for cut in cuts]
    if any(len(row) != width for row in rows):
        raise PolicyFileError(file, f"is damaged: a cut does not have {width} coefficients")
    return StageCuts(
        intercepts=np.array([cut.number(_Cut.INTERCEPT) or 0.0 for cut in cuts], np.float64) / divisor,
        coefficients=np.array(rows, np.float64).reshape(len(cuts), width) / divisor,
        iteration=np.array([cut.integer(_Cut.ITERATION) for cut in cuts], np.int32),
        forward_pass=np.array([cut.integer(_Cut.FORWARD_PASS) for cut in cuts], np.int32),
        is_active=np.array([cut.integer(_Cut.IS_ACTIVE, "u1") for cut in cuts], np.uint8),
    )


def _like_the_first(cuts: StageCuts, names: tuple[str, ...], first: tuple[str, ...]) -> StageCuts:
    """Return the same cuts with their coefficients in the order of the first stage's states."""
    if names == first:
        return cuts
    return replace(cuts, coefficients=np.ascontiguousarray(cuts.coefficients[:, [names.index(name) for name in first]]))


def iso_date(number: int) -> str:
    """Convert 20300131 to 2030-01-31; empty for `NO_DATE`. Raises ValueError for numbers that are not dates."""
    if number == NO_DATE:
        return ""
    try:
        return date(number // 10000, number // 100 % 100, number % 100).isoformat()
    except ValueError:
        raise ValueError(f"{number} is not a date") from None


def _day(number: int) -> str:
    try:
        return iso_date(number)
    except ValueError as error:
        raise FlatTableError(str(error)) from error
