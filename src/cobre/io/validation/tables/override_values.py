"""Bounds of stages and blocks: consistent with what is declared, and only where a variable exists."""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.hydro import Hydro, UnitGroup
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named, repeats
from cobre.records import dataclass

TOLERANCE = 1e-9
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
    most = hydro.outflow.max_outflow_m3s
    return {
        **_turbines(hydro.generation),
        "min_storage_hm3": hydro.reservoir.min_storage_hm3,
        "max_storage_hm3": hydro.reservoir.max_storage_hm3,
        "min_outflow_m3s": hydro.outflow.min_outflow_m3s,
        "max_outflow_m3s": inf if most is None else most,
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

    def key(self, index: int) -> tuple[Key, int, int]:
        """A key as tuples have it."""
        *ids, stage, block = (int(values[index]) for values in self._columns)
        return tuple(ids), stage, block

    def given(self, column: str) -> Floats:
        """What the rows of each key say; NaN: nothing."""
        values = self._table[column]
        found = np.full(len(self._rows), np.nan)
        is_given = ~np.isnan(values)
        found[self._key_of_row[is_given]] = values[is_given]
        return found

    def given_for_blocks(self, column: str) -> list[int]:
        """Keys of single blocks with a value."""
        found: list[int] = np.flatnonzero(~np.isnan(self.given(column)) & (self._columns[-1] != ABSENT_ID)).tolist()
        return found

    def in_force(self, column: str, declared: Mapping[Key, Mapping[str, float]], is_needed: Flags) -> Floats:
        """The value in effect for each key: of the block, else of all blocks, else the declared one."""
        own = self.given(column)
        of_stage = np.where(self._of_stage >= 0, own[self._of_stage], np.nan)
        found = np.where(np.isnan(own), of_stage, own)
        return np.where(np.isnan(found), self.declared(column, declared, is_needed), found)

    def declared(self, column: str, declared: Mapping[Key, Mapping[str, float]], is_needed: Flags) -> Floats:
        """What the entity of each key declares, where it is needed; raises KeyError for one that is not declared."""
        ids = [values[is_needed] for values in self._columns[: self._ids]]
        begins = np.append(np.ones(min(1, len(ids[0])), np.bool_), ~repeats(ids))
        entities = zip(*(values[begins].tolist() for values in ids), strict=True)
        values = np.array([declared[entity][column] for entity in entities])
        found = np.full(len(is_needed), np.nan)
        found[is_needed] = values[np.cumsum(begins) - 1]
        return found


def minima_below_maxima(case: Case, findings: Findings) -> None:
    """The minimum in effect in a stage and block must not exceed the maximum in effect."""
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
    is_wrong = is_given & (low > high + TOLERANCE) & (high >= 0)  # a negative maximum is an error of its own
    for index in np.flatnonzero(is_wrong).tolist():
        message = f"is {low[index]:g}, above {pair[1]}, which is {high[index]:g} there"
        label = _row_label(form, rows.key(index))
        findings.error(form.file, label, pair[0], message, "a minimum that is not above the maximum")


def _row_label(form: TableFormat, key: tuple[Key, int, int]) -> str:
    ids, stage, block = key
    names = [column.removesuffix("_id") for column in form.keys]
    parts: Iterable[tuple[str, int]] = zip(names, (*ids, stage, block), strict=True)
    return ", ".join(f"{name} {value}" for name, value in parts if value != ABSENT_ID)


def limits_not_negative(case: Case, findings: Findings) -> None:
    """Overrides must not be negative, except prices and withdrawals (returned water)."""
    for name, form in OVERRIDE_TABLES.items():
        table = getattr(case.overrides, name)
        if table is None or name.startswith("penalty"):
            continue
        for column in (column.name for column in form.columns if column.kind == "number"):
            if column in MAY_BE_NEGATIVE:
                continue
            for row in (table[column] < 0).nonzero()[0]:
                entity = ", ".join(f"{key.removesuffix('_id')} {table[key][row]}" for key in form.keys[:-1])
                findings.error(form.file, entity, column, f"is {table[column][row]:g}", "at least 0")


def capacities_not_raised(case: Case, findings: Findings) -> None:
    """Overrides may lower the capacity of turbines, not raise it."""
    for bounds in (item for item in BOUNDS if item.name in ("hydro_bounds", "hydro_unit_group_bounds")):
        table, form = getattr(case.overrides, bounds.name), OVERRIDE_TABLES[bounds.name]
        if table is None:
            continue
        declared, rows = bounds.declared(case), _OverrideRows(form, table)
        for column in ("max_turbined_m3s", "max_generation_mw"):
            values = rows.given(column)
            most = rows.declared(column, declared, ~np.isnan(values))
            for index in np.flatnonzero(values > most * (1 + TOLERANCE)).tolist():
                message = f"is {values[index]:g}, above the declared {most[index]:g}"
                remedy = "declare the largest value in system/hydros.json, and rows that lower it before"
                findings.error(form.file, _row_label(form, rows.key(index)), column, message, remedy)


def no_blocks_for_stage_values(case: Case, findings: Findings) -> None:
    """Storage, filling, withdrawal and thermal cost are the same in all blocks of a stage."""
    for name, columns in STAGE_LEVEL.items():
        table, form = getattr(case.overrides, name), OVERRIDE_TABLES[name]
        if table is None:
            continue
        rows = _OverrideRows(form, table)
        for column in columns:
            for index in rows.given_for_blocks(column):
                message = "is given for one block, but applies to the whole stage"
                label = _row_label(form, rows.key(index))
                findings.error(form.file, label, column, message, "a row whose block_id is null")


def overrides_have_effect(case: Case, findings: Findings) -> None:
    """Bounds of diversion need a plant with a diversion, and filling rates a plant with filling.

    Converters of weekly decks write a maximum for plants that divert water out of the modelled rivers, and declare no
    channel for it: that water leaves the system. A minimum needs a channel.
    """
    table, form = case.overrides.hydro_bounds, OVERRIDE_TABLES["hydro_bounds"]
    if table is None:
        return
    diverting = [hydro.id for hydro in case.system.hydros if hydro.diversion is not None]
    filling = [hydro.id for hydro in case.system.hydros if hydro.filling is not None]
    _check_feature(form, table, ("min_diversion_m3s", "max_diversion_m3s"), diverting, "diversion", findings)
    _check_feature(form, table, ("filling_min_rate_m3s",), filling, "filling", findings)


def _check_feature(
    form: TableFormat, table: Table, columns: tuple[str, ...], plants: list[int], feature: str, findings: Findings
) -> None:
    is_elsewhere = ~np.isin(table["hydro_id"], plants)
    remedy = f"add `{feature}` in system/hydros.json or leave the value out"
    for column in columns:
        for row in np.flatnonzero(is_elsewhere & (table[column] > 0)).tolist():
            *ids, stage, block = (int(table[key][row]) for key in form.keys)
            label, value = _row_label(form, (tuple(ids), stage, block)), table[column][row]
            if column.startswith("max_"):
                message = f"is {value:g}, but the plant has no `{feature}`: water that it diverts leaves the system"
                findings.warn(form.file, label, column, message)
            else:
                findings.error(form.file, label, column, f"is {value:g}, but the plant has no `{feature}`", remedy)


def powers_of_plants_at_several_buses(case: Case, findings: Findings) -> None:
    """Warn where the power of a plant with machines at several buses is limited: it holds for all of them together.

    Converters write a limit on the machines of one frequency as one of the plant, and cobre-python applies it to each
    bus.
    """
    table, form, column = case.overrides.hydro_bounds, OVERRIDE_TABLES["hydro_bounds"], "max_generation_mw"
    if table is None:
        return
    for hydro in case.system.hydros:
        buses = {group.bus_id for group in hydro.unit_groups}
        is_lowered = (table["hydro_id"] == hydro.id) & (table[column] < hydro.generation.max_generation_mw)
        if len(buses) > 1 and is_lowered.any():
            message = f"limits the machines at its {len(buses)} buses together (cobre-python: those at each bus)"
            remedy = f"limits of one bus belong into {OVERRIDE_TABLES['hydro_unit_group_bounds'].file}"
            findings.warn(form.file, named("hydro", hydro), column, message, remedy)


RULES: tuple[Rule, ...] = (
    powers_of_plants_at_several_buses,
    minima_below_maxima,
    limits_not_negative,
    capacities_not_raised,
    no_blocks_for_stage_values,
    overrides_have_effect,
)
