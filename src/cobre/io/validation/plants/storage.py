"""Rules about initial storages and the filling of new reservoirs."""

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Filling, Hydro
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.io.input_files.entities import HYDROS
from cobre.io.input_files.initial_conditions import FILE
from cobre.io.input_files.stages_file import FILE as STAGES_FILE
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named, with_ids

RELATIVE_TOLERANCE = 1e-6


def initial_storage(case: Case, findings: Findings) -> None:
    """Volumes outside the limits are moved to the nearest limit, with a warning."""
    for hydro in case.system.hydros:
        if hydro.filling is not None:
            continue
        value = case.initial_conditions.storage_hm3.get(hydro.id)
        low, high = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
        found = f"is {value:g}" if value is not None else "is missing, so it is taken as 0"
        value = value or 0.0
        if value < low or value > high:
            limit = low if value < low else high
            message = f"{found}, outside the limits {low:g} to {high:g}: the study starts from {limit:g}"
            findings.warn(FILE, named("hydro", hydro), "storage.value_hm3", message)
        elif hydro.id not in case.initial_conditions.storage_hm3:
            message = "is missing: the study starts with an empty reservoir"
            findings.warn(FILE, named("hydro", hydro), "storage.value_hm3", message)


def volumes_not_negative(case: Case, findings: Findings) -> None:
    """Initial volumes must not be negative."""
    conditions = case.initial_conditions
    for field, volumes in (("storage", conditions.storage_hm3), ("filling_storage", conditions.filling_storage_hm3)):
        for hydro_id, value in volumes.items():
            findings.demand_not_negative(value, FILE, f"hydro {hydro_id}", f"{field}.value_hm3")


def filling_storage(case: Case, findings: Findings) -> None:
    """Plants that are being filled, and only they, have their initial volume in `filling_storage`."""
    filled = {hydro.id: hydro for hydro in case.system.hydros if hydro.filling is not None}
    conditions = case.initial_conditions
    for hydro_id in conditions.filling_storage_hm3:
        if hydro_id not in filled:
            message = "the plant has no `filling`"
            findings.error(FILE, f"hydro {hydro_id}", "filling_storage.hydro_id", message, "give it in `storage`")
    for hydro_id in conditions.storage_hm3:
        if hydro_id in filled:
            message = "the plant is being filled"
            findings.error(FILE, f"hydro {hydro_id}", "storage.hydro_id", message, "give it in `filling_storage`")
    for hydro_id, hydro in filled.items():
        if hydro_id not in conditions.filling_storage_hm3:
            message = "is missing: filling starts from empty"
            findings.warn(FILE, named("hydro", hydro), "filling_storage.value_hm3", message)
        value, most = conditions.filling_storage_hm3.get(hydro_id, 0.0), hydro.reservoir.max_storage_hm3
        if value > most:
            message = f"is {value:g}, above the plant's maximum, {most:g}"
            findings.error(FILE, named("hydro", hydro), "filling_storage.value_hm3", message, f"at most {most:g}")


def filling_plans(case: Case, findings: Findings) -> None:
    """Filling starts in a stage of the study and ends with the entry in a later one; the plant has no exit stage."""
    stages = {stage.id for stage in case.horizon.stages}
    for hydro in case.system.hydros:
        if hydro.filling is None:
            continue
        for field, is_right, message, remedy in _plan(hydro, hydro.filling, stages):
            if not is_right:
                findings.error(HYDROS, named("hydro", hydro), field, message, remedy)


def _plan(hydro: Hydro, filling: Filling, stages: set[int]) -> list[tuple[str, bool, str, str]]:
    start, entry = filling.start_stage_id, hydro.entry_stage_id
    plan = [
        ("filling.start_stage_id", start in stages, f"is {start}, not a stage of the study", "a stage of the study"),
        ("filling.filling_min_rate_m3s", filling.filling_min_rate_m3s >= 0, "is negative", "at least 0"),
        ("exit_stage_id", hydro.exit_stage_id is None, "is given for a plant that is being filled", "leave it out"),
    ]
    if entry is None:
        plan.append(("entry_stage_id", False, "is missing: filling ends when the plant enters", "the stage of entry"))
    else:
        plan.append(
            ("entry_stage_id", entry in stages, f"is {entry}, not a stage of the study", "a stage of the study")
        )
        plan.append(("entry_stage_id", entry > start, f"is {entry}, not after the start of filling", "a later stage"))
    return plan


def filling_reaches_the_dead_volume(case: Case, findings: Findings) -> None:
    """The minimum rate must fill the dead volume before the plant enters."""
    for hydro in case.system.hydros:
        if hydro.filling is None or hydro.entry_stage_id is None:
            continue
        start = case.initial_conditions.filling_storage_hm3.get(hydro.id, 0.0)
        reached = start + _filled_hm3(case, hydro, hydro.filling)
        needed = _dead_volume_hm3(case, hydro)
        if reached < needed * (1 - RELATIVE_TOLERANCE):
            message = (
                f"is too low: {reached:g} hm3 are reached before stage {hydro.entry_stage_id}, "
                f"and the dead volume is {needed:g} hm3"
            )
            remedy = "a higher rate, an earlier start or a later entry"
            findings.error(HYDROS, named("hydro", hydro), "filling.filling_min_rate_m3s", message, remedy)


def _filled_hm3(case: Case, hydro: Hydro, filling: Filling) -> float:
    rates = _rates_of_stages(case, hydro.id)
    end = hydro.entry_stage_id or 0
    stages = [stage for stage in case.horizon.stages if filling.start_stage_id <= stage.id < end]
    rate = filling.filling_min_rate_m3s
    return sum_in_order(HM3_PER_M3S_HOUR * stage.hours * rates.get(stage.id, rate) for stage in stages)


def _dead_volume_hm3(case: Case, hydro: Hydro) -> float:
    """The minimum storage of the last stage of filling."""
    filling = [stage.id for stage in case.horizon.stages if stage.id < (hydro.entry_stage_id or 0)]
    declared = hydro.reservoir.min_storage_hm3
    return _values_of_stages(case, hydro.id, "min_storage_hm3").get(filling[-1], declared) if filling else declared


def _rates_of_stages(case: Case, hydro_id: int) -> dict[int, float]:
    column = next(column.name for column in OVERRIDE_TABLES["hydro_bounds"].columns if "filling" in column.name)
    return _values_of_stages(case, hydro_id, column)


def _values_of_stages(case: Case, hydro_id: int, column: str) -> dict[int, float]:
    table = case.overrides.hydro_bounds
    if table is None:
        return {}
    rows = (table["hydro_id"] == hydro_id) & ~np.isnan(table[column])
    return dict(zip(table["stage_id"][rows].tolist(), table[column][rows].tolist(), strict=True))


def storages_are_carried(case: Case, findings: Findings) -> None:
    """Warn where state_variables leaves storages out: cuts include them anyway, or the lower bound would be wrong."""
    without = [stage.id for stage in case.horizon.stages if not stage.state_variables.storage]
    if without and case.system.hydros:
        message = f"is false in {with_ids('stage', without)}: storages are in the state anyway"
        findings.warn(STAGES_FILE, "", "state_variables.storage", message, "true: a valid bound needs them")


RULES: tuple[Rule, ...] = (
    storages_are_carried,
    initial_storage,
    volumes_not_negative,
    filling_storage,
    filling_plans,
    filling_reaches_the_dead_volume,
)
