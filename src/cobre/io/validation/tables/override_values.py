"""Bounds of stages and blocks: consistent with what is declared, and only where a variable exists."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

import numpy as np

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.hydro import Hydro, UnitGroup
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named

TOLERANCE = 1e-9
Key = tuple[int, ...]
Values = dict[tuple[Key, int, int], float]

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


def minima_below_maxima(case: Case, findings: Findings) -> None:
    """The minimum in effect in a stage and block must not exceed the maximum in effect."""
    for bounds in BOUNDS:
        table = getattr(case.overrides, bounds.name)
        if table is not None:
            declared = bounds.declared(case)
            for pair in bounds.pairs:
                _check_pair(OVERRIDE_TABLES[bounds.name], table, pair, declared, findings)


def _check_pair(
    form: TableFormat,
    table: Table,
    pair: tuple[str, str],
    declared: Mapping[Key, Mapping[str, float]],
    findings: Findings,
) -> None:
    lower, upper = (_given(form, table, column) for column in pair)
    for key in sorted({*lower, *upper}):
        low = _in_force(lower, key, declared[key[0]][pair[0]])
        high = _in_force(upper, key, declared[key[0]][pair[1]])
        if low > high + TOLERANCE and high >= 0:  # a negative maximum is an error of its own
            message = f"is {low:g}, above {pair[1]}, which is {high:g} there"
            findings.error(
                form.file, _row_label(form, key), pair[0], message, "a minimum that is not above the maximum"
            )


def _given(form: TableFormat, table: Table, column: str) -> Values:
    """The values of a column by entity, stage and block."""
    keys = [table[key].tolist() for key in form.keys]
    rows = zip(*keys, table[column].tolist(), strict=True)
    return {(tuple(ids), stage, block): value for *ids, stage, block, value in rows if not isnan(value)}


def _in_force(values: Values, key: tuple[Key, int, int], declared: float) -> float:
    """The value in effect: the row of the block, else the row for all blocks, else the declared value."""
    ids, stage, _ = key
    return values.get(key, values.get((ids, stage, ABSENT_ID), declared))


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
        declared = bounds.declared(case)
        for column in ("max_turbined_m3s", "max_generation_mw"):
            for key, value in _given(form, table, column).items():
                most = declared[key[0]][column]
                if value > most * (1 + TOLERANCE):
                    message = f"is {value:g}, above the declared {most:g}"
                    remedy = "declare the largest value in system/hydros.json, and rows that lower it before"
                    findings.error(form.file, _row_label(form, key), column, message, remedy)


def no_blocks_for_stage_values(case: Case, findings: Findings) -> None:
    """Storage, filling, withdrawal and thermal cost are the same in all blocks of a stage."""
    for name, columns in STAGE_LEVEL.items():
        table, form = getattr(case.overrides, name), OVERRIDE_TABLES[name]
        for column in columns if table is not None else ():
            for key in _given(form, table, column):
                if key[2] != ABSENT_ID:
                    message = "is given for one block, but applies to the whole stage"
                    findings.error(form.file, _row_label(form, key), column, message, "a row whose block_id is null")


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
