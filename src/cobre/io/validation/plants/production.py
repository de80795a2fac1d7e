"""Production models: every plant has, in every stage, exactly one source of its production function."""

from collections.abc import Iterator
from itertools import pairwise
from math import isnan

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.hydro import FphaConfig, Hydro, ProductionChoice
from cobre.core.temporal import Stage
from cobre.io.decoding.format_version import INTEGRATED_COLUMN
from cobre.io.input_files.production_models import FILE
from cobre.io.input_files.table_formats import PRODUCTION_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, distinct, named, with_ids
from cobre.io.validation.plants.cascade import GEOMETRY_FILE, geometry_points

# Which production model a plant has in a stage.


def choice_of(case: Case, hydro: Hydro, stage: Stage) -> ProductionChoice:
    """The choice of the first range that contains the stage, or of its season, or the model that the plant declares."""
    production = case.production.by_hydro.get(hydro.id)
    if production is None:
        return ProductionChoice(hydro.generation.model)
    for span in production.stage_ranges:
        if span.start_stage_id <= stage.id and (span.end_stage_id is None or stage.id <= span.end_stage_id):
            return span.choice
    if stage.season_id is not None and stage.season_id in production.seasons:
        return production.seasons[stage.season_id]
    return production.default or ProductionChoice(hydro.generation.model)


def tabulated_productivity(case: Case) -> dict[tuple[int, int], float]:
    """Values of hydro_energy_productivity.parquet by plant and stage (ABSENT_ID: all stages)."""
    table = case.production.energy_productivity
    if table is None:
        return {}
    values = table["equivalent_productivity_mw_per_m3s"]
    rows = zip(table["hydro_id"].tolist(), table["stage_id"].tolist(), values.tolist(), strict=True)
    return {(hydro, stage): value for hydro, stage, value in rows if not isnan(value)}


def tabulated_for(table: dict[tuple[int, int], float], hydro: Hydro, stage: Stage) -> float | None:
    """The value for a stage, else that for all stages, else None."""
    return table.get((hydro.id, stage.id), table.get((hydro.id, ABSENT_ID)))


PLANES_FILE = PRODUCTION_TABLES["hyperplanes"].file

PRODUCTIVITY_FILE = PRODUCTION_TABLES["energy_productivity"].file


def _serves(hydro: Hydro, stage: Stage) -> bool:
    entered = hydro.entry_stage_id is None or hydro.entry_stage_id <= stage.id
    return entered and (hydro.exit_stage_id is None or stage.id < hydro.exit_stage_id)


def _choices(case: Case) -> Iterator[tuple[Hydro, list[tuple[Stage, ProductionChoice]]]]:
    for hydro in case.system.hydros:
        serving = [stage for stage in case.horizon.stages if _serves(hydro, stage)]
        yield hydro, [(stage, choice_of(case, hydro, stage)) for stage in serving]


def productivity_from_one_source(case: Case, findings: Findings) -> None:
    """A plant of constant productivity has one value in each stage: from the models, or from the table, not both."""
    table = tabulated_productivity(case)
    for hydro, choices in _choices(case):
        constant = [(stage, choice) for stage, choice in choices if choice.model != "fpha"]
        own = {stage.id: choice.productivity_mw_per_m3s for stage, choice in constant}
        tabulated = {stage.id: tabulated_for(table, hydro, stage) for stage, _ in constant}
        twice = [id_ for id_ in own if own[id_] is not None and tabulated[id_] is not None]
        never = [id_ for id_ in own if own[id_] is None and tabulated[id_] is None]
        entity = named("hydro", hydro)
        if twice:
            message = f"is given here and in {FILE} for {with_ids('stage', twice)}"
            findings.error(PRODUCTIVITY_FILE, entity, "equivalent_productivity_mw_per_m3s", message, "keep one of them")
        if never:
            message = f"there is no value for {with_ids('stage', never)}"
            findings.error(FILE, entity, "productivity_mw_per_m3s", message, f"a value here or in {PRODUCTIVITY_FILE}")


def productivity_not_negative(case: Case, findings: Findings) -> None:
    """A productivity must not be negative; 0 is for reservoirs without turbines."""
    for hydro_id, choice in _declared_choices(case):
        value = choice.productivity_mw_per_m3s
        entity = f"production model of hydro {hydro_id}"
        if value is not None and choice.model == "fpha":
            message = "a plant with a plane model has no single productivity"
            findings.error(FILE, entity, "productivity_mw_per_m3s", message, "leave it out for the model fpha")
        elif value is not None:
            findings.demand_not_negative(value, FILE, entity, "productivity_mw_per_m3s")
    table = case.production.energy_productivity
    if table is not None:
        columns = [
            column.name for column in PRODUCTION_TABLES["energy_productivity"].columns if column.kind == "number"
        ]
        wrong = [(name, table[name] < 0.0, "at least 0") for name in (*columns, INTEGRATED_COLUMN) if name in table]
        findings.report_rows(PRODUCTIVITY_FILE, table, wrong, lambda rows, row: f"hydro {rows['hydro_id'][row]}")


def turbines_have_productivity(case: Case, findings: Findings) -> None:
    """Warn of a plant with turbines and a productivity of 0."""
    for hydro, choices in _choices(case):
        idle = [stage.id for stage, choice in choices if choice.productivity_mw_per_m3s == 0]
        if idle and hydro.generation.max_generation_mw > 0:
            message = f"is 0 in {with_ids('stage', idle)}: the plant generates nothing there"
            findings.warn(FILE, named("hydro", hydro), "productivity_mw_per_m3s", message)


def _declared_choices(case: Case) -> Iterator[tuple[int, ProductionChoice]]:
    for hydro_id, production in case.production.by_hydro.items():
        for span in production.stage_ranges:
            yield hydro_id, span.choice
        for choice in production.seasons.values():
            yield hydro_id, choice


def ranges_of_stages(case: Case, findings: Findings) -> None:
    """Ranges end after they start; overlapping ranges, of which the first is used, are a warning."""
    for hydro_id, production in case.production.by_hydro.items():
        entity = f"production model of hydro {hydro_id}"
        taken: set[int] = set()
        for position, span in enumerate(production.stage_ranges):
            field = f"stage_ranges[{position}]"
            if span.end_stage_id is not None and span.end_stage_id < span.start_stage_id:
                message = f"is {span.end_stage_id}, before start_stage_id, which is {span.start_stage_id}"
                findings.error(FILE, entity, f"{field}.end_stage_id", message, "a stage that is not before the start")
            last = max(stage.id for stage in case.horizon.stages) if span.end_stage_id is None else span.end_stage_id
            covered = {stage.id for stage in case.horizon.stages if span.start_stage_id <= stage.id <= last}
            if covered & taken:
                message = f"{with_ids('stage', covered & taken)}: an earlier range covers this already and is used"
                findings.warn(FILE, entity, field, message)
            taken |= covered


def planes_of_fpha_plants(case: Case, findings: Findings) -> None:
    """A plant with the model fpha has the source of its planes, and the planes or the data to compute them."""
    planes = _stages_with_planes(case.production.hyperplanes)
    points = geometry_points(case)
    for hydro, choices in _choices(case):
        with_planes = [(stage, choice.fpha_config) for stage, choice in choices if choice.model == "fpha"]
        if not with_planes:
            continue
        missing = [stage.id for stage, config in with_planes if config is None]
        if missing:
            message = f"the model is fpha in {with_ids('stage', missing)}, without fpha_config"
            findings.error(FILE, named("hydro", hydro), "fpha_config", message, "give its source")
        _check_precomputed(hydro, [s for s, c in with_planes if c and c.source == "precomputed"], planes, findings)
        if any(config and config.source == "computed" for _, config in with_planes):
            _check_geometry(hydro, points.get(hydro.id, 0), findings)


def _stages_with_planes(table: Table | None) -> set[tuple[int, int]]:
    if table is None:
        return set()
    return set(zip(table["hydro_id"].tolist(), table["stage_id"].tolist(), strict=True))


def _check_precomputed(hydro: Hydro, stages: list[Stage], planes: set[tuple[int, int]], findings: Findings) -> None:
    without = [stage.id for stage in stages if not {(hydro.id, stage.id), (hydro.id, ABSENT_ID)} & planes]
    if without:
        message = f"there are no planes for {with_ids('stage', without)}"
        remedy = "planes of these stages, or of all stages (stage_id null)"
        findings.error(PLANES_FILE, named("hydro", hydro), "", message, remedy)


def _check_geometry(hydro: Hydro, points: int, findings: Findings) -> None:
    if points == 0:
        message = "planes are computed from geometry, which has no row"
        findings.error(GEOMETRY_FILE, named("hydro", hydro), "", message, "at least 1: volume, height, area")
    elif points == 1 and hydro.reservoir.min_storage_hm3 < hydro.reservoir.max_storage_hm3:
        message = "has 1 row although the storage varies: planes are computed with one level for all volumes"
        findings.warn(GEOMETRY_FILE, named("hydro", hydro), "", message)


def signs_of_planes(case: Case, findings: Findings) -> None:
    """Planes rise with storage and fall with spillage."""
    table = case.production.hyperplanes
    if table is None:
        return
    wrong = (
        ("gamma_v", table["gamma_v"] < 0, "at least 0"),
        ("gamma_s", table["gamma_s"] > 0, "at most 0"),
        ("kappa", table["kappa"] <= 0, "a number above 0"),
    )
    findings.report_rows(PLANES_FILE, table, wrong, _plane)


def _plane(table: Table, row: int) -> str:
    return f"hydro {table['hydro_id'][row]}, plane {table['plane_id'][row]}"


def order_of_geometry(case: Case, findings: Findings) -> None:
    """Height and area grow with volume."""
    table = case.production.geometry
    if table is None:
        return
    is_same_plant = table["hydro_id"][1:] == table["hydro_id"][:-1]
    steps = {"volume_hm3": "strictly", "height_m": "never down", "area_km2": "never down"}
    for column, rule in steps.items():
        change = np.diff(table[column])
        is_wrong = is_same_plant & (change <= 0 if rule == "strictly" else change < 0)
        for hydro_id in np.unique(table["hydro_id"][1:][is_wrong]):
            message = "does not increase with the volume" if rule == "never down" else "is given twice"
            findings.error(
                GEOMETRY_FILE, f"hydro {hydro_id}", column, message, "rows of a reservoir from empty to full"
            )


def settings_of_fpha(case: Case, findings: Findings) -> None:
    """Fitting windows do not end before they begin, and reference volumes are given in one way."""
    for hydro_id, choice in _declared_choices(case):
        entity = f"production model of hydro {hydro_id}"
        for field, is_right, message, remedy in _settings(choice):
            if not is_right:
                findings.error(FILE, entity, field, message, remedy)


def _settings(choice: ProductionChoice) -> Iterator[tuple[str, bool, str, str]]:
    if choice.reference_volume is not None:
        volume, percentile = choice.reference_volume.volume_hm3, choice.reference_volume.percentile
        is_one = (volume is None) != (percentile is None)
        yield "reference_volume", is_one, "must have one of volume_hm3 and percentile", "one of them"
        in_range = percentile is None or 0 <= percentile <= 1
        yield "reference_volume.percentile", in_range, f"is {percentile}", "between 0 and 1"
    if choice.fpha_config is not None:
        yield from _window(choice.fpha_config)


def _window(config: FphaConfig) -> Iterator[tuple[str, bool, str, str]]:
    window = config.fitting_window
    if window is None:
        return
    for side in ("min", "max"):
        both = (getattr(window, f"volume_{side}_hm3"), getattr(window, f"volume_{side}_percentile"))
        field, is_right = f"fpha_config.fitting_window.volume_{side}_hm3", None in both
        yield field, is_right, f"is given beside volume_{side}_percentile", "one of them"
    for unit in ("hm3", "percentile"):
        low, high = getattr(window, f"volume_min_{unit}"), getattr(window, f"volume_max_{unit}")
        # Converters give run-of-river plants a window of one volume: `sddp.hydro_models.fpha_fitting` fits around it.
        is_right = low is None or high is None or low <= high
        message = f"is {low}, above the maximum, which is {high}"
        yield f"fpha_config.fitting_window.volume_min_{unit}", is_right, message, "at most the maximum"


def tables_of_other_plants(case: Case, findings: Findings) -> None:
    """Planes of a plant that does not use them have no effect."""
    table = case.production.hyperplanes
    if table is None:
        return
    users = {
        hydro.id
        for hydro, choices in _choices(case)
        if any(choice.fpha_config and choice.fpha_config.source == "precomputed" for _, choice in choices)
    }
    for hydro_id in sorted(set(table["hydro_id"].tolist()) - users):
        message = "its planes are not used: no stage uses precomputed planes"
        findings.warn(PLANES_FILE, f"hydro {hydro_id}", "", message)


RULES: tuple[Rule, ...] = (
    productivity_from_one_source,
    productivity_not_negative,
    turbines_have_productivity,
    ranges_of_stages,
    planes_of_fpha_plants,
    signs_of_planes,
    order_of_geometry,
    settings_of_fpha,
    tables_of_other_plants,
)


# Families of tailrace curves: segments that join, one reference level for each family, plants that use them.


TAILRACE_FILE = PRODUCTION_TABLES["tailrace_curves"].file

OUTFLOW_TOLERANCE_M3S = 1e-6

LEVEL_TOLERANCE_M = 1e-3

Finding = tuple[str, str, str]  # field, message, remedy


def numbers_of_curves(case: Case, findings: Findings) -> None:
    """Outflows and levels are not negative, and a segment ends after it begins."""
    table = case.production.tailrace_curves
    if table is None:
        return
    wrong = (
        ("downstream_reference_level_m", table["downstream_reference_level_m"] < 0, "at least 0"),
        ("outflow_min_m3s", table["outflow_min_m3s"] < 0, "at least 0"),
        ("outflow_max_m3s", table["outflow_max_m3s"] < table["outflow_min_m3s"], "at least outflow_min_m3s"),
    )
    findings.report_rows(TAILRACE_FILE, table, wrong, _segment)


def _segment(table: Table, row: int) -> str:
    return f"{_family(table, row)}, segment {table['segment_id'][row]}"


def joined_segments(case: Case, findings: Findings) -> None:
    """The segments of a family follow one another without a gap, an overlap or a step."""
    table = case.production.tailrace_curves
    if table is None:
        return
    for hydro_id, family_id in distinct(table, "hydro_id", "family_id"):
        rows = np.flatnonzero((table["hydro_id"] == hydro_id) & (table["family_id"] == family_id))
        rows = rows[np.argsort(table["outflow_min_m3s"][rows], kind="stable")]
        for field, message, remedy in _joints(table, rows.tolist()):
            findings.error(TAILRACE_FILE, _family(table, rows[0]), field, message, remedy)


def one_family_for_a_level(case: Case, findings: Findings) -> None:
    """The level of the reservoir downstream chooses between the families of a plant."""
    table = case.production.tailrace_curves
    if table is None:
        return
    levels: dict[tuple[int, float], set[int]] = {}
    columns = (table[name].tolist() for name in ("hydro_id", "downstream_reference_level_m", "family_id"))
    for hydro_id, level, family_id in zip(*columns, strict=True):
        levels.setdefault((hydro_id, level), set()).add(family_id)
    for (hydro_id, level), families in levels.items():
        if len(families) > 1:
            message = f"families {', '.join(map(str, sorted(families)))} have the same level, {level:g}"
            field = "downstream_reference_level_m"
            findings.error(TAILRACE_FILE, f"hydro {hydro_id}", field, message, "a level of its own for each family")


def _joints(table: Table, rows: list[int]) -> Iterator[Finding]:
    levels = table["downstream_reference_level_m"]
    if len({float(levels[row]) for row in rows}) > 1:
        yield "downstream_reference_level_m", "differs from segment to segment", "one level for each family"
    for before, after in pairwise(rows):
        end, start = table["outflow_max_m3s"][before], table["outflow_min_m3s"][after]
        if abs(end - start) > OUTFLOW_TOLERANCE_M3S:
            word = "a gap" if start > end else "an overlap"
            yield (
                "outflow_min_m3s",
                f"there is {word} between {end:g} and {start:g} m3/s",
                "segments that meet",
            )
            continue
        left, right = _level_m(table, before, end), _level_m(table, after, end)
        if abs(left - right) > LEVEL_TOLERANCE_M:
            message = f"the level jumps from {left:g} to {right:g} m at {end:g} m3/s"
            yield "coefficient_0", message, "the same level where segments meet"


def _level_m(table: Table, row: int, outflow_m3s: float) -> float:
    return sum_in_order(table[f"coefficient_{power}"][row] * outflow_m3s**power for power in range(5))


def _family(table: Table, row: int | np.integer) -> str:
    return f"hydro {table['hydro_id'][row]}, family {table['family_id'][row]}"


def curves_of_other_plants(case: Case, findings: Findings) -> None:
    """Curves serve planes that are computed; other plants do not read them."""
    for (hydro_id,) in distinct(case.production.tailrace_curves, "hydro_id"):
        hydro = next((plant for plant in case.system.hydros if plant.id == hydro_id), None)
        configs = [choice_of(case, hydro, stage).fpha_config for stage in case.horizon.stages] if hydro else []
        if hydro is not None and not any(config and config.source == "computed" for config in configs):
            message = "its curves are not used: no stage uses computed planes"
            findings.warn(TAILRACE_FILE, f"hydro {hydro_id}", "", message)


TAILRACE_RULES: tuple[Rule, ...] = (
    numbers_of_curves,
    joined_segments,
    one_family_for_a_level,
    curves_of_other_plants,
)
