"""The policy of a run in the files of cobre-python (format 3) or novomodelo (format 4).

Field numbers follow the published schema (crates/cobre-io/schemas/policy.fbs) and, for later fields, files that
cobre-python 0.18.0 and novomodelo 0.19.1 wrote. Cuts are in $ in format 3, and in scaled units, as ours, in format 4.
All cuts are written as active, also those that cut selection deactivated: our simulations use all cuts, those of
cobre-python only the active ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import flatbuffers
import numpy as np
from numpy.typing import NDArray

from cobre.compat.policy_checkpoint import entity_manifest, from_elsewhere, number_of_day
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName
from cobre.export.cobre_python_columns import Program
from cobre.io.policies.cobre_python_policy import IDENTIFIER, NO_DATE, STATE_KINDS
from cobre.io.policies.policy_file import PolicyData, PolicyMetadata, StageCuts
from cobre.records import dataclass

# Tables of the FlatBuffers format, written field by field with the library. `FlatTable` in
# `io.policies.cobre_python_policy` reads them.


class Field(NamedTuple):
    """A value and its type: u1, i4, u4, u8, f8, bool, or `at`, the offset of something written before."""

    kind: str
    value: Any


class FlatWriter:
    """A writer of one file. What a table refers to is written before it and referenced by its position."""

    def __init__(self, expected_bytes: int = 1024) -> None:
        self._builder: Any = flatbuffers.Builder(expected_bytes)
        self._builder.ForceDefaults(True)  # cobre-python reads an absent number as the mark of an older version

    def text(self, value: str) -> Field:
        """Write a string; returns its position."""
        return Field("at", self._builder.CreateString(value))

    def numbers(self, values: NDArray[Any] | Sequence[int], dtype: str) -> Field:
        """Write a vector of numbers; returns its position."""
        array = np.ascontiguousarray(values, np.dtype(dtype))
        if not len(array):
            self._builder.StartVector(array.itemsize, 0, array.itemsize)
            return Field("at", self._builder.EndVector())
        return Field("at", self._builder.CreateNumpyVector(array))

    def tables(self, positions: Sequence[Field]) -> Field:
        """Write a vector of tables, given by their positions; returns its position."""
        self._builder.StartVector(4, len(positions), 4)
        for position in reversed(positions):
            self._builder.PrependUOffsetTRelative(position.value)
        return Field("at", self._builder.EndVector())

    def table(self, fields: Mapping[int, Field]) -> Field:
        """Write a table; fields by their numbers in the schema."""
        prepend = {
            "u1": self._builder.PrependUint8Slot,
            "bool": self._builder.PrependBoolSlot,
            "i4": self._builder.PrependInt32Slot,
            "u4": self._builder.PrependUint32Slot,
            "u8": self._builder.PrependUint64Slot,
            "f8": self._builder.PrependFloat64Slot,
            "at": self._builder.PrependUOffsetTRelativeSlot,
        }
        self._builder.StartObject(max(fields) + 1)
        for number, (kind, value) in fields.items():
            prepend[kind](number, value, 0)
        return Field("at", self._builder.EndObject())

    def file(self, root: Field) -> bytes:
        """Finish the file, with the identifier of cobre-python's policy files, and return its bytes."""
        self._builder.Finish(root.value, file_identifier=IDENTIFIER)
        return bytes(self._builder.Output())


# The entries of the state in the order of cobre-python: storages, lagged inflows, water in transit, commitments.
#
# Its commitments are stored in a ring buffer: that of a delivery stage is at the stage's number modulo the longest
# lead, for all plants side by side. Ours are ordered by distance from the present stage.

NO_ENTRY = -1

Entity = dict[str, Any]


def peer_states(metadata: PolicyMetadata, stage: int) -> tuple[list[Entity], list[int]]:
    """Return cobre-python's state entries after a stage, and the index of each in our state (NO_ENTRY: none)."""
    components = list(enumerate(entity_manifest(metadata, stage)))
    by_kind = {
        kind: [(entity, at) for at, entity in components if entity["entity_type"] == number]
        for number, kind in enumerate(STATE_KINDS)
    }
    water = sorted(by_kind[IN_TRANSIT], key=lambda pair: (_sort_key(metadata, pair[0]), pair[0]["subindex"]))
    states = [*by_kind[STORAGE], *by_kind[INFLOW_LAG], *water, *_ring(by_kind[COMMITMENT], stage)]
    return [entity for entity, _ in states], [at for _, at in states]


def _sort_key(metadata: PolicyMetadata, entity: Entity) -> int:
    return metadata.state_names.index(str(StateName(STORAGE, entity["entity_id"])))


def _ring(commitments: list[tuple[Entity, int]], stage: int) -> list[tuple[Entity, int]]:
    by_entity = {(entity["entity_id"], entity["subindex"]): (entity, at) for entity, at in commitments}
    plants = list(dict.fromkeys(plant for plant, _ in sorted(by_entity)))
    size = max((distance for _, distance in by_entity), default=0)
    empty = {"entity_type": STATE_KINDS.index(COMMITMENT), "was_active": True, "reference_date": NO_DATE}
    empty |= {"interval_start": NO_DATE, "interval_end": NO_DATE}
    ring: list[tuple[Entity, int]] = []
    for residue in range(size):
        distance = (residue - stage - 1) % size + 1
        for plant in plants:
            entity, at = by_entity.get((plant, distance), (empty | {"entity_id": plant}, NO_ENTRY))
            ring.append((empty | entity | {"subindex": residue}, at))
    return ring


@dataclass(frozen=True, slots=True)
class Seasons:
    """cycle_code: 0 monthly, 1 weekly, 2 custom. orders: by hydro id, the number of inflow lags in each season."""

    cycle_code: int
    count: int
    orders: dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class Producer:
    """Facts about the run that trained the policy, and the program for which its files are written."""

    program: Program

    created_at: str
    max_iterations: int
    forward_passes: int
    best_upper_bound: float
    lower_bounds: Sequence[float]
    seasons: Seasons | None
    block_modes: Sequence[str]  # by stage


def write_policy_files(folder: Path, policy: PolicyData, producer: Producer) -> None:
    """Write manifest.bin, cuts/NNN.bin for each stage, and an empty folder for bases, which cobre-python computes."""
    (folder / "cuts").mkdir(parents=True)
    (folder / "basis").mkdir()
    (folder / "manifest.bin").write_bytes(_manifest(policy, producer))
    for stage in range(len(policy.stages)):
        (folder / "cuts" / f"{stage:03d}.bin").write_bytes(_pool(policy, stage, producer))


def _manifest(policy: PolicyData, producer: Producer) -> bytes:
    writer, metadata = FlatWriter(), policy.metadata
    ids = metadata.stage_ids
    warm = [from_elsewhere(stage) for stage in policy.stages]
    is_mixed = len(set(producer.block_modes)) > 1
    fields = {
        0: Field("u4", producer.program.policy_format),
        1: writer.text(producer.program.version),
        2: writer.text(producer.created_at),
        3: Field("u4", len(ids)),
        4: Field("u4", len(policy.stages)),
        5: writer.tables([_node(writer, id_, stage) for stage, id_ in enumerate(ids)]),
        6: writer.tables([_edge(writer, source, target) for source, target in pairwise(ids)]),
        7: Field("u4", metadata.iterations),
        8: Field("f8", _number(metadata.facts.get("lower_bound"))),
        9: Field("f8", producer.best_upper_bound),
        10: Field("u4", producer.max_iterations),
        11: Field("u4", producer.forward_passes),
        12: Field("u4", max(warm, default=0)),
        13: writer.numbers(warm, "<u4"),
        14: Field("u8", metadata.seeds.get("tree_seed", 0)),
        15: Field("u8", 0),  # states of training are not exported
        16: writer.text("mixed" if is_mixed else producer.block_modes[0]),
        17: writer.tables([writer.text(mode) for mode in producer.block_modes] if is_mixed else []),
        18: Field("f8", metadata.cost_scale),
        19: _seasons(writer, producer.seasons),
        20: writer.text(producer.program.software),
        21: writer.numbers(np.array(producer.lower_bounds, np.float64), "<f8"),
    }
    if producer.program.has_scaled_cuts:  # of format 4: no history of states, no counters of activity, no bases
        fields |= {22: Field("u1", 0), 23: Field("u4", 0), 24: Field("bool", False), 25: Field("bool", False)}
    return writer.file(writer.table(fields))


def _node(writer: FlatWriter, id_: int, pool: int) -> Field:
    return writer.table({0: Field("i4", id_), 1: Field("i4", id_), 2: Field("u4", pool)})


def _edge(writer: FlatWriter, source: int, target: int) -> Field:
    return writer.table({0: Field("i4", source), 1: Field("i4", target), 2: Field("f8", 1.0)})


def _seasons(writer: FlatWriter, seasons: Seasons | None) -> Field:
    season_map = seasons or Seasons(255, 0, {})
    orders = [(hydro, writer.numbers(values, "<u4")) for hydro, values in season_map.orders.items()]
    listed = writer.tables([writer.table({0: Field("i4", hydro), 1: values}) for hydro, values in orders])
    return writer.table({0: Field("u1", season_map.cycle_code), 1: Field("u4", season_map.count), 2: listed})


def _pool(policy: PolicyData, stage: int, producer: Producer) -> bytes:
    metadata, is_scaled = policy.metadata, producer.program.has_scaled_cuts
    states, order = peer_states(metadata, stage)
    cuts = _reorder(policy.stages[stage], order)
    count, width = cuts.coefficients.shape
    writer = FlatWriter(count * (width * 8 + 100) + 64 * width + 1024)
    listed = _cuts(writer, cuts, 1.0 if is_scaled else metadata.cost_scale, producer)
    entities = writer.tables([_entity(writer, entity) for entity in states])
    fields = {
        0: Field("u4", stage),
        1: Field("u4", width),
        2: Field("u4", count),
        3: Field("u4", from_elsewhere(cuts)),
        4: listed,
        **({} if is_scaled else {5: writer.numbers(np.arange(count), "<u4")}),  # the active cuts
        6: Field("u4", count),
        7: entities,
        8: Field("f8", metadata.cost_scale),
        9: Field("i4", metadata.stage_ids[stage]),
        10: Field("i4", metadata.stage_ids[stage]),
        11: Field("i4", number_of_day(metadata.stage_end_dates[stage])),
    }
    return writer.file(writer.table(fields))


def _reorder(cuts: StageCuts, order: list[int]) -> StageCuts:
    if order == list(range(cuts.coefficients.shape[1])):
        return cuts
    padded = np.concatenate([cuts.coefficients, np.zeros((len(cuts.intercepts), 1))], axis=1)  # NO_ENTRY picks the zero
    return replace(cuts, coefficients=np.ascontiguousarray(padded[:, order]))


def _cuts(writer: FlatWriter, cuts: StageCuts, factor: float, producer: Producer) -> Field:
    """Write the cuts, times the factor that converts our units to those of the file."""
    intercepts = (cuts.intercepts * factor).tolist()
    iterations, passes = cuts.iteration.tolist(), cuts.forward_pass.tolist()
    positions = []
    for slot, intercept in enumerate(intercepts):
        coefficients = writer.numbers(cuts.coefficients[slot] * factor, "<f8")
        fields = {
            1: Field("u4", slot),
            2: Field("u4", iterations[slot]),
            3: Field("u4", passes[slot]),
            4: Field("f8", intercept),
            5: coefficients,
            6: Field("bool", True),
        }
        if producer.program.has_scaled_cuts:
            fields[8] = Field("bool", False)  # not scored by a selection
        else:
            fields[0] = Field("u8", iterations[slot] * producer.forward_passes + passes[slot])
        positions.append(writer.table(fields))
    return writer.tables(positions)


def _entity(writer: FlatWriter, entity: dict[str, Any]) -> Field:
    return writer.table(
        {
            0: Field("u1", entity["entity_type"]),
            1: Field("i4", entity["entity_id"]),
            2: Field("u4", entity["subindex"]),
            3: Field("bool", entity["was_active"]),
            6: Field("i4", entity["reference_date"]),
            7: Field("i4", entity["interval_start"]),
            8: Field("i4", entity["interval_end"]),
        }
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
