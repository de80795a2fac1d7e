"""Rows of tables: no duplicates, bounds that agree with declared limits, and no bounds without effect."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from cobre.core.arrays import Flags, Floats, distinct_values
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.file_names import (
    CONSTRAINT_BOUNDS_FILE,
    CONTRACTS_FILE,
    HYDROS_FILE,
    LINES_FILE,
    STAGES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.core.hydro import Hydro, UnitGroup
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.findings import Findings, Layer, about, error_code, named, warning_code
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES
from cobre.io.validation.references import override_tables, scenario_tables
from cobre.io.validation.rules import (
    NEGATIVE,
    OVERRIDES,
    PRODUCTIONS,
    SCENARIOS,
    Rule,
    distinct,
    repeats,
    row_subject,
    rule,
)
from cobre.records import dataclass

BOUND_TOLERANCE = 1e-9
MAX_BOUND_RATIO = 10.0
"""A bound above this multiple of the declared capacity gives a warning; official decks go up to 5.3."""

ROW_TWICE = error_code("row-twice", Layer.DIMENSIONS, "appears {value} times", remedy="keep one of them")

UNKNOWN_BLOCK = error_code(
    "unknown-block",
    Layer.DIMENSIONS,
    "stage {stage} has no block {value}",
    expected="0 to {last}, or null for all blocks",
)

# Rows given twice, and blocks that do not exist.


@rule(iterated=SCENARIOS.values())
def no_scenario_row_twice(case: Case, findings: Findings) -> None:
    """Require that the keys of a scenario table identify its rows."""
    for form, table in scenario_tables(case):
        if form.file != SCENARIOS["inflow_history"]:  # windows may also overlap: checked with the histories
            _report_twice(form, form.keys, table, findings)


@rule(iterated=PRODUCTIONS.values())
def no_plane_twice(case: Case, findings: Findings) -> None:
    """Require planes, productivities and segments of tailrace curves that are given once."""
    for name in ("hyperplanes", "energy_productivity", "tailrace_curves"):
        table = getattr(case.production, name)
        if table is not None:
            _report_twice(PRODUCTION_TABLES[name], PRODUCTION_TABLES[name].keys, table, findings)


@rule(iterated=(*OVERRIDES.values(), CONSTRAINT_BOUNDS_FILE))
def no_override_twice(case: Case, findings: Findings) -> None:
    """Require that a column of a table of overrides is given once for an entity, stage and block."""
    for form, table in override_tables(case):
        if not repeats([table[key] for key in form.keys]).any():
            continue
        for column in (column.name for column in form.columns if column.kind == "number"):
            has_value = ~np.isnan(table[column])
            _report_twice(form, form.keys, {key: table[key][has_value] for key in form.keys}, findings, column)


def _report_twice(form: TableFormat, keys: Sequence[str], table: Table, findings: Findings, column: str = "") -> None:
    """Report duplicate rows; rows are sorted by their keys, so that duplicates are adjacent."""
    again = np.flatnonzero(repeats([table[key] for key in keys]))
    rows = zip(*(table[key][again].tolist() for key in keys), strict=True)
    for row, count in Counter(rows).items():
        findings.add(ROW_TWICE, form.file, row_subject(keys, row), column, value=count + 1)


@rule(STAGES_FILE, error_free=(*OVERRIDES.values(), CONSTRAINT_BOUNDS_FILE))
def blocks_of_overrides(case: Case, findings: Findings) -> None:
    """Require that a row for a block names one that its stage has."""
    blocks = {stage.id: len(stage.blocks) for stage in case.horizon.stages}
    for form, table in override_tables(case):
        if "block_id" not in table:
            continue
        # Most rows are for whole stages and name no block.
        of_blocks = {name: table[name][table["block_id"] != ABSENT_ID] for name in form.keys}
        for *_, stage_id, block_id in distinct(of_blocks, *form.keys):
            if not 0 <= block_id < blocks[stage_id]:
                facts = {"stage": stage_id, "value": block_id, "last": blocks[stage_id] - 1}
                findings.add(UNKNOWN_BLOCK, form.file, about("rows of stage", stage_id), "block_id", **facts)


DIMENSION_RULES: tuple[Rule, ...] = (
    no_scenario_row_twice,
    no_plane_twice,
    no_override_twice,
    blocks_of_overrides,
)

# Bounds compared with the limits that entities declare.

BOUNDS_CROSSED = error_code(
    "bounds-crossed",
    Layer.MEANING,
    "is {value:g}, above {maximum_field}, which is {maximum:g} there",
    expected="a minimum that is not above the maximum",
)

CAPACITY_RAISED = error_code(
    "capacity-raised",
    Layer.MEANING,
    "is {value:g}, above the declared {declared:g}",
    remedy=f"declare the largest value in {HYDROS_FILE}, and rows that lower it before",
)

BLOCK_OF_STAGE_VALUE = error_code(
    "stage-value-by-block",
    Layer.MEANING,
    "is given for one block, but applies to the whole stage",
    expected="a row whose block_id is null",
)

DIVERSION_LEAVES = warning_code(
    "diversion-leaves-system",
    Layer.MEANING,
    "is {value:g}, but the plant has no `{feature}`: water that it diverts leaves the system",
)

FEATURE_MISSING = error_code(
    "bound-without-feature",
    Layer.MEANING,
    "is {value:g}, but the plant has no `{feature}`",
    remedy=f"add `{{feature}}` in {HYDROS_FILE} or leave the value out",
)

LIMIT_OF_SEVERAL_BUSES = warning_code(
    "limit-of-several-buses",
    Layer.MEANING,
    "limits the machines at its {value} buses together (cobre-python: those at each bus)",
    remedy=f"put limits of one bus into {OVERRIDES['hydro_unit_group_bounds']}",
)

BOUND_FAR_ABOVE_CAPACITY = warning_code(
    "bound-far-above-capacity",
    Layer.MEANING,
    "is {value:g}, and {kind} {id} declares {declared:g}: the bound of the stage is used",
)

Key = tuple[int, ...]
MAY_BE_NEGATIVE = ("price_per_mwh", "water_withdrawal_m3s")
# Columns whose values apply to the stage, not to single blocks.
STAGE_LEVEL: Mapping[str, tuple[str, ...]] = {
    "hydro_bounds": ("min_storage_hm3", "max_storage_hm3", "filling_min_rate_m3s", "water_withdrawal_m3s"),
    "thermal_bounds": ("cost_per_mwh",),
}
TURBINES = (("min_turbined_m3s", "max_turbined_m3s"), ("min_generation_mw", "max_generation_mw"))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A table of bounds: pairs of minimum and maximum columns, and the declared values."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    declared: Callable[[Case], Mapping[Key, Mapping[str, float]]]


def _thermals(case: Case) -> dict[Key, dict[str, float]]:
    return {
        (plant.id,): {"min_generation_mw": plant.generation.min_mw, "max_generation_mw": plant.generation.max_mw}
        for plant in case.system.thermals
    }


def _hydros(case: Case) -> dict[Key, dict[str, float]]:
    return {(hydro.id,): _declared_by(hydro) for hydro in case.system.hydros}


def _declared_by(hydro: Hydro) -> dict[str, float]:
    maximum = hydro.outflow.max_outflow_m3s
    return {
        **_turbines(hydro.generation),
        "min_storage_hm3": hydro.reservoir.min_storage_hm3,
        "max_storage_hm3": hydro.reservoir.max_storage_hm3,
        "min_outflow_m3s": hydro.outflow.min_outflow_m3s,
        "max_outflow_m3s": inf if maximum is None else maximum,
        "min_diversion_m3s": 0.0,
        "max_diversion_m3s": hydro.diversion.flow_limit_m3s if hydro.diversion else 0.0,
        "min_spillage_m3s": 0.0,
        "max_spillage_m3s": inf,
    }


def _turbines(owner: Any) -> dict[str, float]:
    return {column: getattr(owner, column) for pair in TURBINES for column in pair}


def _groups(case: Case) -> dict[Key, dict[str, float]]:
    groups: list[tuple[Hydro, UnitGroup]] = [
        (hydro, group) for hydro in case.system.hydros for group in hydro.unit_groups
    ]
    return {(hydro.id, group.id): _turbines(group) for hydro, group in groups}


def _stations(case: Case) -> dict[Key, dict[str, float]]:
    stations = case.system.pumping_stations
    return {(station.id,): {"min_m3s": station.flow.min_m3s, "max_m3s": station.flow.max_m3s} for station in stations}


def _contracts(case: Case) -> dict[Key, dict[str, float]]:
    contracts = case.system.energy_contracts
    return {(item.id,): {"min_mw": item.limits.min_mw, "max_mw": item.limits.max_mw} for item in contracts}


HYDRO_PAIRS = (
    *TURBINES,
    ("min_storage_hm3", "max_storage_hm3"),
    ("min_outflow_m3s", "max_outflow_m3s"),
    ("min_diversion_m3s", "max_diversion_m3s"),
    ("min_spillage_m3s", "max_spillage_m3s"),
)
BOUNDS = (
    _Bounds("thermal_bounds", (("min_generation_mw", "max_generation_mw"),), _thermals),
    _Bounds("hydro_bounds", HYDRO_PAIRS, _hydros),
    _Bounds("hydro_unit_group_bounds", TURBINES, _groups),
    _Bounds("pumping_bounds", (("min_m3s", "max_m3s"),), _stations),
    _Bounds("contract_bounds", (("min_mw", "max_mw"),), _contracts),
)


class _OverrideRows:
    """Rows of a table of bounds, which are sorted, by key: entity, stage and block. Several rows may share a key."""

    def __init__(self, form: TableFormat, table: Table) -> None:
        self._table = table
        self._ids = len(form.keys) - 2
        keys = [table[key] for key in form.keys]
        count = len(keys[0])
        is_first = np.append(np.ones(min(1, count), np.bool_), ~repeats(keys))
        self._key_of_row = np.cumsum(is_first) - 1
        self._columns = [values[is_first] for values in keys]
        self._rows = np.flatnonzero(is_first)
        # The row for all blocks comes first among those of an entity and stage.
        begins = np.append(np.ones(min(1, len(self._rows)), np.bool_), ~repeats(self._columns[:-1]))
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        self._of_stage = np.where(self._columns[-1][first] == ABSENT_ID, first, -1)

    def key(self, index: int) -> Key:
        """Return ids of the entity, the stage and the block of a key."""
        return tuple(int(values[index]) for values in self._columns)

    def given(self, column: str) -> Floats:
        """Return the value of a column for each key; NaN where its rows give none."""
        values = self._table[column]
        column_values = np.full(len(self._rows), np.nan)
        is_given = ~np.isnan(values)
        column_values[self._key_of_row[is_given]] = values[is_given]
        return column_values

    def given_for_blocks(self, column: str) -> list[int]:
        """Return keys of single blocks with a value."""
        rows: list[int] = np.flatnonzero(~np.isnan(self.given(column)) & (self._columns[-1] != ABSENT_ID)).tolist()
        return rows

    def in_force(self, column: str, declared: Mapping[Key, Mapping[str, float]], is_needed: Flags) -> Floats:
        """Return the value in effect for each key: of the block, else of all blocks, else the declared one."""
        values = self.given(column)
        of_stage = np.where(self._of_stage >= 0, values[self._of_stage], np.nan)
        in_force = np.where(np.isnan(values), of_stage, values)
        return np.where(np.isnan(in_force), self.declared(column, declared, is_needed), in_force)

    def declared(self, column: str, declared: Mapping[Key, Mapping[str, float]], is_needed: Flags) -> Floats:
        """Return what the entity of each key declares, where needed. Raises KeyError for one that is not declared."""
        ids = [values[is_needed] for values in self._columns[: self._ids]]
        begins = np.append(np.ones(min(1, len(ids[0])), np.bool_), ~repeats(ids))
        entities = zip(*(values[begins].tolist() for values in ids), strict=True)
        values = np.array([declared[entity][column] for entity in entities])
        limits = np.full(len(is_needed), np.nan)
        limits[is_needed] = values[np.cumsum(begins) - 1]
        return limits


@rule(
    THERMALS_FILE, HYDROS_FILE, STATIONS_FILE, CONTRACTS_FILE, error_free=[OVERRIDES[bounds.name] for bounds in BOUNDS]
)
def minima_below_maxima(case: Case, findings: Findings) -> None:
    """Refuse a minimum in effect in a stage and block that exceeds the maximum in effect."""
    for bounds in BOUNDS:
        table = getattr(case.overrides, bounds.name)
        if table is not None:
            declared, form = bounds.declared(case), OVERRIDE_TABLES[bounds.name]
            rows = _OverrideRows(form, table)
            for pair in bounds.pairs:
                _check_pair(form, rows, pair, declared, findings)


def _check_pair(
    form: TableFormat,
    rows: _OverrideRows,
    pair: tuple[str, str],
    declared: Mapping[Key, Mapping[str, float]],
    findings: Findings,
) -> None:
    is_given = ~(np.isnan(rows.given(pair[0])) & np.isnan(rows.given(pair[1])))
    low, high = (rows.in_force(column, declared, is_given) for column in pair)
    is_wrong = is_given & (low > high + BOUND_TOLERANCE) & (high >= 0)  # a negative maximum is an error of its own
    for index in np.flatnonzero(is_wrong).tolist():
        facts = {"value": low[index], "maximum_field": pair[1], "maximum": high[index]}
        findings.add(BOUNDS_CROSSED, form.file, row_subject(form.keys, rows.key(index)), pair[0], **facts)


@rule(iterated=OVERRIDES.values())
def limits_not_negative(case: Case, findings: Findings) -> None:
    """Refuse negative overrides, except prices and withdrawals (returned water)."""
    for name, form in OVERRIDE_TABLES.items():
        table = getattr(case.overrides, name)
        if table is None or name.startswith("penalty"):
            continue
        for column in (column.name for column in form.columns if column.kind == "number"):
            for row in np.flatnonzero(table[column] < 0) if column not in MAY_BE_NEGATIVE else ():
                subject = row_subject(form.keys[:-1], [table[key][row] for key in form.keys[:-1]])
                findings.add(NEGATIVE, form.file, subject, column, value=table[column][row])


@rule(HYDROS_FILE, error_free=(OVERRIDES["hydro_bounds"], OVERRIDES["hydro_unit_group_bounds"]))
def capacities_not_raised(case: Case, findings: Findings) -> None:
    """Refuse overrides that raise the capacity of turbines; they may lower it."""
    for bounds in (item for item in BOUNDS if item.name in ("hydro_bounds", "hydro_unit_group_bounds")):
        table, form = getattr(case.overrides, bounds.name), OVERRIDE_TABLES[bounds.name]
        if table is None:
            continue
        declared, rows = bounds.declared(case), _OverrideRows(form, table)
        for column in ("max_turbined_m3s", "max_generation_mw"):
            values = rows.given(column)
            capacities = rows.declared(column, declared, ~np.isnan(values))
            for index in np.flatnonzero(values > capacities * (1 + BOUND_TOLERANCE)).tolist():
                subject = row_subject(form.keys, rows.key(index))
                findings.add(
                    CAPACITY_RAISED, form.file, subject, column, value=values[index], declared=capacities[index]
                )


@rule(iterated=[OVERRIDES[name] for name in STAGE_LEVEL])
def no_blocks_for_stage_values(case: Case, findings: Findings) -> None:
    """Refuse storage, filling, withdrawal and thermal cost by block: they are the same in all blocks of a stage."""
    for name, columns in STAGE_LEVEL.items():
        table, form = getattr(case.overrides, name), OVERRIDE_TABLES[name]
        if table is None:
            continue
        rows = _OverrideRows(form, table)
        for column in columns:
            for index in rows.given_for_blocks(column):
                findings.add(BLOCK_OF_STAGE_VALUE, form.file, row_subject(form.keys, rows.key(index)), column)


@rule(HYDROS_FILE, OVERRIDES["hydro_bounds"])
def overrides_have_effect(case: Case, findings: Findings) -> None:
    """Require a diversion for bounds of diversion, and filling for filling rates.

    Converters of weekly decks write a maximum for plants that divert water out of the modelled rivers, and declare no
    channel for it: that water leaves the system. A minimum needs a channel.
    """
    table, form = case.overrides.hydro_bounds, OVERRIDE_TABLES["hydro_bounds"]
    if table is None:
        return
    diverting = [hydro.id for hydro in case.system.hydros if hydro.diversion is not None]
    filling = [hydro.id for hydro in case.system.hydros if hydro.filling is not None]
    for column, plants, feature, code in (
        ("min_diversion_m3s", diverting, "diversion", FEATURE_MISSING),
        ("max_diversion_m3s", diverting, "diversion", DIVERSION_LEAVES),
        ("filling_min_rate_m3s", filling, "filling", FEATURE_MISSING),
    ):
        for row in np.flatnonzero(~np.isin(table["hydro_id"], plants) & (table[column] > 0)).tolist():
            subject = row_subject(form.keys, [table[key][row] for key in form.keys])
            findings.add(code, form.file, subject, column, value=table[column][row], feature=feature)


@rule(HYDROS_FILE, OVERRIDES["hydro_bounds"])
def powers_of_plants_at_several_buses(case: Case, findings: Findings) -> None:
    """Warn if the power of a plant with machines at several buses is limited: it holds for all of them together.

    Converters write a limit on the machines of one frequency as one of the plant, and cobre-python applies it to each
    bus.
    """
    table, column = case.overrides.hydro_bounds, "max_generation_mw"
    if table is None:
        return
    for hydro in case.system.hydros:
        buses = {group.bus_id for group in hydro.unit_groups}
        if len(buses) < 2:
            continue
        is_lowered = (table["hydro_id"] == hydro.id) & (table[column] < hydro.generation.max_generation_mw)
        if is_lowered.any():
            file = OVERRIDES["hydro_bounds"]
            findings.add(LIMIT_OF_SEVERAL_BUSES, file, named("hydro", hydro), column, value=len(buses))


@rule(
    iterated=(
        THERMALS_FILE,
        HYDROS_FILE,
        LINES_FILE,
        *(OVERRIDES[name] for name in ("thermal_bounds", "hydro_bounds", "line_bounds")),
    )
)
def bounds_near_capacities(case: Case, findings: Findings) -> None:
    """Warn of bounds by stage that are many times what the entity declares."""
    system = case.system
    compared: Sequence[tuple[str, str, Sequence[Any], str]] = (
        ("thermal", "max_generation_mw", system.thermals, "generation.max_mw"),
        ("hydro", "max_turbined_m3s", system.hydros, "generation.max_turbined_m3s"),
        ("hydro", "max_generation_mw", system.hydros, "generation.max_generation_mw"),
        ("hydro", "max_storage_hm3", system.hydros, "reservoir.max_storage_hm3"),
        ("line", "direct_mw", system.lines, "capacity.direct_mw"),
        ("line", "reverse_mw", system.lines, "capacity.reverse_mw"),
    )
    for kind, column, members, path in compared:
        table = getattr(case.overrides, f"{kind}_bounds")
        if table is None:
            continue
        declared = {entity.id: attrgetter(path)(entity) for entity in members}
        ids, index = np.unique(table[f"{kind}_id"], return_inverse=True)
        capacities = np.array([declared.get(id_) or np.nan for id_ in ids.tolist()], np.float64)[index]
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(table[column] > MAX_BOUND_RATIO * capacities)
        for at in distinct_values(index[rows]).tolist():
            row = rows[index[rows] == at][0]
            facts = {"value": table[column][row], "kind": kind, "id": int(ids[at]), "declared": capacities[row]}
            subject = about(kind, int(ids[at]), "stage", int(table["stage_id"][row]))
            findings.add(BOUND_FAR_ABOVE_CAPACITY, OVERRIDES[f"{kind}_bounds"], subject, column, **facts)


RULES: tuple[Rule, ...] = (
    powers_of_plants_at_several_buses,
    minima_below_maxima,
    limits_not_negative,
    capacities_not_raised,
    no_blocks_for_stage_values,
    overrides_have_effect,
    bounds_near_capacities,
)
