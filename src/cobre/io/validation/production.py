"""Production of hydro plants: models, planes, geometry, tailrace curves, and the values computed from them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isnan

import numpy as np

from cobre.core.arrays import distinct_values, sum_in_order
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.entities import is_in_service
from cobre.core.file_names import HYDROS_FILE, PARAMETERS_FILE, PRODUCTION_FILE, STAGES_FILE
from cobre.core.generic_constraints import Parameter
from cobre.core.hydro import FphaConfig, Hydro, ProductionChoice
from cobre.core.temporal import Stage
from cobre.io.decoding.format_version import INTEGRATED_COLUMN
from cobre.io.findings import (
    Code,
    Findings,
    Layer,
    Subject,
    about,
    error_code,
    named,
    stages,
    warning_code,
)
from cobre.io.input_files.table_formats import PRODUCTION_TABLES
from cobre.io.validation.rules import NEGATIVE, OUT_OF_RANGE, PRODUCTIONS, Rule, distinct, report_rows, rule
from cobre.io.validation.water import GEOMETRY, geometry_points

PLANES = PRODUCTIONS["hyperplanes"]
PRODUCTIVITY = PRODUCTIONS["energy_productivity"]
TAILRACE = PRODUCTIONS["tailrace_curves"]
CHOICES = (HYDROS_FILE, PRODUCTION_FILE, STAGES_FILE)

# Productivities: every plant has, in every stage, exactly one source of its production function.

PRODUCTIVITY_TWICE = error_code(
    "productivity-twice",
    Layer.MEANING,
    f"is given here and in {PRODUCTION_FILE} for {{value}}",
    remedy="keep one of them",
)

NO_PRODUCTIVITY = error_code(
    "productivity-missing",
    Layer.MEANING,
    "there is no value for {value}",
    expected=f"a value here or in {PRODUCTIVITY}",
)

PRODUCTIVITY_OF_PLANES = error_code(
    "productivity-of-plane-model",
    Layer.MEANING,
    "a plant with a plane model has no single productivity",
    remedy="leave it out for the model fpha",
)

IDLE_TURBINES = warning_code(
    "productivity-of-zero",
    Layer.MEANING,
    "is 0 in {value}: the plant generates nothing there",
)

RANGE_REVERSED = error_code(
    "stage-range-reversed",
    Layer.MEANING,
    "is {value}, before start_stage_id, which is {start}",
    expected="a stage that is not before the start",
)

RANGES_OVERLAP = warning_code(
    "stage-ranges-overlap",
    Layer.MEANING,
    "{value}: an earlier range covers this already and is used",
)


def _choices(case: Case) -> Iterator[tuple[Hydro, list[tuple[ProductionChoice, Sequence[Stage]]]]]:
    """Yield each plant with its choices, and the stages that they hold in while it is in service."""
    stages = case.horizon.stages
    for hydro in case.system.hydros:
        is_always_there = hydro.entry_stage_id is None and hydro.exit_stage_id is None
        serving = stages if is_always_there else [stage for stage in stages if is_in_service(hydro, stage.id)]
        yield hydro, case.production.stages_by_choice(hydro, serving)


def _declared_choices(case: Case) -> Iterator[tuple[Subject, ProductionChoice]]:
    for hydro_id, production in case.production.by_hydro.items():
        subject = about("production model of hydro", hydro_id)
        for span in production.stage_ranges:
            yield subject, span.choice
        for choice in production.seasons.values():
            yield subject, choice


@rule(*CHOICES, PRODUCTIVITY)
def productivity_from_one_source(case: Case, findings: Findings) -> None:
    """Require one value in each stage for a plant of constant productivity: from the models or the table, not both."""
    table = _tabulated(case, "equivalent_productivity_mw_per_m3s")
    for hydro, choices in _choices(case):
        twice: list[int] = []
        never: list[int] = []
        for choice, of_choice in choices:
            if choice.model != "fpha":
                tabulated, others = _by_value(table, hydro.id, of_choice)
                is_given = choice.productivity_mw_per_m3s is not None
                twice += [stage.id for stage in tabulated] if is_given else []
                never += [stage.id for stage in others] if not is_given else []
        subject = named("hydro", hydro)
        if twice:
            field = "equivalent_productivity_mw_per_m3s"
            findings.add(PRODUCTIVITY_TWICE, PRODUCTIVITY, subject, field, value=stages(sorted(twice)))
        if never:
            findings.add(
                NO_PRODUCTIVITY, PRODUCTION_FILE, subject, "productivity_mw_per_m3s", value=stages(sorted(never))
            )


@rule(iterated=(PRODUCTION_FILE, PRODUCTIVITY))
def productivity_not_negative(case: Case, findings: Findings) -> None:
    """Refuse negative productivities; 0 is for reservoirs without turbines."""
    for subject, choice in _declared_choices(case):
        value = choice.productivity_mw_per_m3s
        if value is not None and choice.model == "fpha":
            findings.add(PRODUCTIVITY_OF_PLANES, PRODUCTION_FILE, subject, "productivity_mw_per_m3s", value=value)
        elif value is not None and value < 0.0:
            findings.add(NEGATIVE, PRODUCTION_FILE, subject, "productivity_mw_per_m3s", value=value)
    table = case.production.energy_productivity
    if table is not None:
        numbers = [
            column.name for column in PRODUCTION_TABLES["energy_productivity"].columns if column.kind == "number"
        ]
        wrong = [(name, table[name] < 0.0, "at least 0") for name in (*numbers, INTEGRATED_COLUMN) if name in table]
        report_rows(PRODUCTIVITY, table, wrong, lambda rows, row: about("hydro", int(rows["hydro_id"][row])), findings)


@rule(*CHOICES)
def turbines_have_productivity(case: Case, findings: Findings) -> None:
    """Warn of a plant with turbines and a productivity of 0."""
    for hydro, choices in _choices(case):
        idle = [stage.id for choice, of in choices if choice.productivity_mw_per_m3s == 0 for stage in of]
        if idle and hydro.generation.max_generation_mw > 0:
            subject = named("hydro", hydro)
            findings.add(IDLE_TURBINES, PRODUCTION_FILE, subject, "productivity_mw_per_m3s", value=stages(sorted(idle)))


@rule(PRODUCTION_FILE, STAGES_FILE)
def ranges_of_stages(case: Case, findings: Findings) -> None:
    """Require ranges that end after they start; warn of overlapping ones, of which the first is used."""
    stage_ids = [stage.id for stage in case.horizon.stages]
    for hydro_id, production in case.production.by_hydro.items():
        subject = about("production model of hydro", hydro_id)
        already_covered: set[int] = set()
        for position, span in enumerate(production.stage_ranges):
            field = f"stage_ranges[{position}]"
            if span.end_stage_id is not None and span.end_stage_id < span.start_stage_id:
                facts = {"value": span.end_stage_id, "start": span.start_stage_id}
                findings.add(RANGE_REVERSED, PRODUCTION_FILE, subject, f"{field}.end_stage_id", **facts)
            last = max(stage_ids) if span.end_stage_id is None else span.end_stage_id
            covered = {stage_id for stage_id in stage_ids if span.start_stage_id <= stage_id <= last}
            if covered & already_covered:
                findings.add(RANGES_OVERLAP, PRODUCTION_FILE, subject, field, value=stages(covered & already_covered))
            already_covered |= covered


# Planes of the model fpha: given, or computed from geometry.

SOURCE_OF_PLANES = error_code(
    "source-of-planes-missing",
    Layer.MEANING,
    "the model is fpha in {value}, without fpha_config",
    remedy="give its source",
)

NO_PLANES = error_code(
    "planes-missing",
    Layer.MEANING,
    "there are no planes for {value}",
    expected="planes of these stages, or of all stages (stage_id null)",
)

PLANES_WITHOUT_GEOMETRY = error_code(
    "planes-without-geometry",
    Layer.MEANING,
    "planes are computed from geometry, which has no row",
    expected="at least 1: volume, height, area",
)

ONE_LEVEL = warning_code(
    "geometry-of-one-row",
    Layer.MEANING,
    "has 1 row although the storage varies: planes are computed with one level for all volumes",
)

VOLUME_TWICE = error_code(
    "geometry-volume-twice", Layer.MEANING, "is given twice", expected="rows of a reservoir from empty to full"
)

GEOMETRY_ORDER = error_code(
    "geometry-not-increasing",
    Layer.MEANING,
    "does not increase with the volume",
    expected="rows of a reservoir from empty to full",
)

REFERENCE_VOLUME = error_code(
    "reference-volume",
    Layer.MEANING,
    "must have one of volume_hm3 and percentile",
    expected="one of them",
)

FITTING_WINDOW_TWICE = error_code(
    "fitting-window-twice", Layer.MEANING, "is given together with {other}", expected="one of them"
)

WINDOW_REVERSED = error_code(
    "fitting-window-reversed",
    Layer.MEANING,
    "is {value}, above the maximum, which is {maximum}",
    expected="at most the maximum",
)

PLANES_NOT_USED = warning_code(
    "planes-not-used", Layer.MEANING, "its planes are not used: no stage uses precomputed planes"
)


@rule(*CHOICES, PLANES, GEOMETRY)
def planes_of_fpha_plants(case: Case, findings: Findings) -> None:
    """Require the source of planes of a plant with the model fpha, and the planes or the data to compute them."""
    planes = frozenset(distinct(case.production.hyperplanes, "hydro_id", "stage_id"))
    points = geometry_points(case)
    for hydro, choices in _choices(case):
        with_planes = [(choice.fpha_config, of) for choice, of in choices if choice.model == "fpha"]
        subject = named("hydro", hydro)
        missing = [stage.id for config, of in with_planes if config is None for stage in of]
        if missing:
            findings.add(SOURCE_OF_PLANES, PRODUCTION_FILE, subject, "fpha_config", value=stages(sorted(missing)))
        with_planes_file = [of for config, of in with_planes if config and config.source == "precomputed"]
        without = [stage.id for of in with_planes_file for stage in _by_value(planes, hydro.id, of)[1]]
        if without:
            findings.add(NO_PLANES, PLANES, subject, value=stages(sorted(without)))
        if any(config and config.source == "computed" for config, _ in with_planes):
            _check_geometry(hydro, points.get(hydro.id, 0), findings)


def _check_geometry(hydro: Hydro, points: int, findings: Findings) -> None:
    if points == 0:
        findings.add(PLANES_WITHOUT_GEOMETRY, GEOMETRY, named("hydro", hydro))
    elif points == 1 and hydro.reservoir.min_storage_hm3 < hydro.reservoir.max_storage_hm3:
        findings.add(ONE_LEVEL, GEOMETRY, named("hydro", hydro))


@rule(PLANES)
def signs_of_planes(case: Case, findings: Findings) -> None:
    """Require planes that rise with storage and fall with spillage."""
    table = case.production.hyperplanes
    if table is not None:
        wrong = (
            ("gamma_v", table["gamma_v"] < 0, "at least 0"),
            ("gamma_s", table["gamma_s"] > 0, "at most 0"),
            ("kappa", table["kappa"] <= 0, "a number above 0"),
        )
        report_rows(PLANES, table, wrong, _plane, findings)


def _plane(table: Table, row: int) -> Subject:
    return about("hydro", int(table["hydro_id"][row]), "plane", int(table["plane_id"][row]))


@rule(GEOMETRY)
def order_of_geometry(case: Case, findings: Findings) -> None:
    """Require height and area that grow with volume."""
    table = case.production.geometry
    if table is None:
        return
    is_same_plant = table["hydro_id"][1:] == table["hydro_id"][:-1]
    for column, code in (("volume_hm3", VOLUME_TWICE), ("height_m", GEOMETRY_ORDER), ("area_km2", GEOMETRY_ORDER)):
        change = np.diff(table[column])
        is_wrong = is_same_plant & (change <= 0 if code is VOLUME_TWICE else change < 0)
        for hydro_id in distinct_values(table["hydro_id"][1:][is_wrong]).tolist():
            findings.add(code, GEOMETRY, about("hydro", hydro_id), column)


@rule(PRODUCTION_FILE)
def settings_of_fpha(case: Case, findings: Findings) -> None:
    """Refuse fitting windows that end before they begin, and reference volumes given in two ways."""
    for subject, choice in _declared_choices(case):
        if choice.reference_volume is not None:
            volume, percentile = choice.reference_volume.volume_hm3, choice.reference_volume.percentile
            if (volume is None) == (percentile is None):
                findings.add(REFERENCE_VOLUME, PRODUCTION_FILE, subject, "reference_volume")
            if percentile is not None and not 0 <= percentile <= 1:
                facts = {"value": percentile, "range": "between 0 and 1"}
                findings.add(OUT_OF_RANGE, PRODUCTION_FILE, subject, "reference_volume.percentile", **facts)
        if choice.fpha_config is not None:
            _check_window(choice.fpha_config, subject, findings)


def _check_window(config: FphaConfig, subject: Subject, findings: Findings) -> None:
    window, path = config.fitting_window, "fpha_config.fitting_window"
    if window is None:
        return
    for side in ("min", "max"):
        other = f"volume_{side}_percentile"
        if getattr(window, f"volume_{side}_hm3") is not None and getattr(window, other) is not None:
            findings.add(FITTING_WINDOW_TWICE, PRODUCTION_FILE, subject, f"{path}.volume_{side}_hm3", other=other)
    for unit in ("hm3", "percentile"):
        low, high = getattr(window, f"volume_min_{unit}"), getattr(window, f"volume_max_{unit}")
        # Converters give run-of-river plants a window of one volume: `sddp.hydro_models.fpha_fitting` fits around it.
        if low is not None and high is not None and low > high:
            findings.add(
                WINDOW_REVERSED, PRODUCTION_FILE, subject, f"{path}.volume_min_{unit}", value=low, maximum=high
            )


@rule(*CHOICES, PLANES)
def planes_of_other_plants(case: Case, findings: Findings) -> None:
    """Warn of planes of a plant that does not use them."""
    table = case.production.hyperplanes
    if table is None:
        return
    users = {
        hydro.id
        for hydro, choices in _choices(case)
        if any(choice.fpha_config and choice.fpha_config.source == "precomputed" for choice, _ in choices)
    }
    for hydro_id in sorted(set(table["hydro_id"].tolist()) - users):
        findings.add(PLANES_NOT_USED, PLANES, about("hydro", hydro_id))


# Families of tailrace curves: segments that join, one reference level for each family, plants that use them.

OUTFLOW_TOLERANCE_M3S = 1e-6
LEVEL_TOLERANCE_M = 1e-3

LEVELS_DIFFER = error_code(
    "tailrace-levels-differ",
    Layer.MEANING,
    "differs from segment to segment",
    expected="one level for each family",
)

SEGMENTS_APART = error_code(
    "tailrace-segments-apart",
    Layer.MEANING,
    "there is {fault} between {end:g} and {value:g} m3/s",
    expected="segments that meet",
)

LEVEL_JUMPS = error_code(
    "tailrace-level-jumps",
    Layer.MEANING,
    "the level jumps from {left:g} to {right:g} m at {outflow:g} m3/s",
    expected="the same level where segments meet",
)

SAME_LEVEL = error_code(
    "tailrace-families-of-one-level",
    Layer.MEANING,
    "families {families} have the same level, {value:g}",
    expected="a level of its own for each family",
)

CURVES_NOT_USED = warning_code(
    "tailrace-curves-not-used", Layer.MEANING, "its curves are not used: no stage uses computed planes"
)


@rule(TAILRACE)
def numbers_of_curves(case: Case, findings: Findings) -> None:
    """Refuse negative outflows and levels, and segments that end before they begin."""
    table = case.production.tailrace_curves
    if table is not None:
        wrong = (
            ("downstream_reference_level_m", table["downstream_reference_level_m"] < 0, "at least 0"),
            ("outflow_min_m3s", table["outflow_min_m3s"] < 0, "at least 0"),
            ("outflow_max_m3s", table["outflow_max_m3s"] < table["outflow_min_m3s"], "at least outflow_min_m3s"),
        )
        report_rows(TAILRACE, table, wrong, _segment, findings)


def _segment(table: Table, row: int) -> Subject:
    hydro, family, segment = (int(table[name][row]) for name in ("hydro_id", "family_id", "segment_id"))
    return about("hydro", hydro, "family", family, "segment", segment)


@rule(TAILRACE)
def joined_segments(case: Case, findings: Findings) -> None:
    """Require segments of a family that follow one another without a gap, an overlap or a step."""
    table = case.production.tailrace_curves
    if table is None:
        return
    for hydro_id, family_id in distinct(table, "hydro_id", "family_id"):
        rows = np.flatnonzero((table["hydro_id"] == hydro_id) & (table["family_id"] == family_id))
        rows = rows[np.argsort(table["outflow_min_m3s"][rows], kind="stable")]
        for field, code, facts in _joints(table, rows.tolist()):
            findings.add(code, TAILRACE, about("hydro", hydro_id, "family", family_id), field, **facts)


def _joints(table: Table, rows: list[int]) -> Iterator[tuple[str, Code, dict[str, object]]]:
    levels = table["downstream_reference_level_m"]
    if len({float(levels[row]) for row in rows}) > 1:
        yield "downstream_reference_level_m", LEVELS_DIFFER, {}
    for before, after in pairwise(rows):
        end, start = table["outflow_max_m3s"][before], table["outflow_min_m3s"][after]
        if abs(end - start) > OUTFLOW_TOLERANCE_M3S:
            fault = "a gap" if start > end else "an overlap"
            yield "outflow_min_m3s", SEGMENTS_APART, {"fault": fault, "end": end, "value": start}
            continue
        left, right = _level_m(table, before, end), _level_m(table, after, end)
        if abs(left - right) > LEVEL_TOLERANCE_M:
            yield "coefficient_0", LEVEL_JUMPS, {"left": left, "right": right, "outflow": end}


def _level_m(table: Table, row: int, outflow_m3s: float) -> float:
    return sum_in_order(table[f"coefficient_{power}"][row] * outflow_m3s**power for power in range(5))


@rule(TAILRACE)
def one_family_for_a_level(case: Case, findings: Findings) -> None:
    """Require different levels of the families of a plant: the level downstream chooses between them."""
    table = case.production.tailrace_curves
    if table is None:
        return
    levels: dict[tuple[int, float], set[int]] = {}
    columns = (table[name].tolist() for name in ("hydro_id", "downstream_reference_level_m", "family_id"))
    for hydro_id, level, family_id in zip(*columns, strict=True):
        levels.setdefault((hydro_id, level), set()).add(family_id)
    for (hydro_id, level), families in levels.items():
        if len(families) > 1:
            facts = {"families": ", ".join(map(str, sorted(families))), "value": level}
            findings.add(SAME_LEVEL, TAILRACE, about("hydro", hydro_id), "downstream_reference_level_m", **facts)


@rule(*CHOICES, TAILRACE)
def curves_of_other_plants(case: Case, findings: Findings) -> None:
    """Warn of curves of plants without computed planes: they are not read."""
    hydros = {hydro.id: hydro for hydro in case.system.hydros}
    for (hydro_id,) in distinct(case.production.tailrace_curves, "hydro_id"):
        hydro = hydros.get(hydro_id)
        if hydro is not None and not any(_computes_planes(choice) for choice in _choices_of(case, hydro)):
            findings.add(CURVES_NOT_USED, TAILRACE, about("hydro", hydro_id))


def _choices_of(case: Case, hydro: Hydro) -> list[ProductionChoice]:
    """Return all choices for a plant, in service or not."""
    return [choice for choice, _ in case.production.stages_by_choice(hydro, case.horizon.stages)]


def _computes_planes(choice: ProductionChoice) -> bool:
    return choice.fpha_config is not None and choice.fpha_config.source == "computed"


RULES: tuple[Rule, ...] = (
    productivity_from_one_source,
    productivity_not_negative,
    turbines_have_productivity,
    ranges_of_stages,
    planes_of_fpha_plants,
    signs_of_planes,
    order_of_geometry,
    settings_of_fpha,
    planes_of_other_plants,
    numbers_of_curves,
    joined_segments,
    one_family_for_a_level,
    curves_of_other_plants,
)

# Values computed from data that the rules above found valid: planes from geometry, parameters from productivities.

FITTED_FROM = ("tailrace", "hydraulic_losses", "efficiency")
OF_ONE_PLANT = ("equivalent_productivity", "integrated_equivalent_productivity")
OF_A_CASCADE = ("accumulated_productivity", "integrated_accumulated_productivity", "max_stored_energy")

FITTING_DATA = error_code(
    "planes-without-plant-data",
    Layer.MEANING,
    "is missing, but needed to compute the planes of the plant",
    remedy="give it, or precomputed planes",
)

PARAMETER_WITHOUT_DATA = error_code(
    "parameter-without-productivity",
    Layer.MEANING,
    "hydro {value} ({name}) has no {needed} in stage {stage}",
    expected=f"a value in {HYDROS_FILE} or in {PRODUCTIVITY}",
)


@rule(error_free=CHOICES)
def planes_can_be_computed(case: Case, findings: Findings) -> None:
    """Require the data of plants whose planes are computed."""
    for hydro in case.system.hydros:
        if any(choice.model == "fpha" and _computes_planes(choice) for choice in _choices_of(case, hydro)):
            for name in FITTED_FROM:
                if getattr(hydro, name) is None:
                    findings.add(FITTING_DATA, HYDROS_FILE, named("hydro", hydro), name)


@rule(error_free=(*CHOICES, PARAMETERS_FILE, GEOMETRY, PRODUCTIVITY))
def parameters_can_be_computed(case: Case, findings: Findings) -> None:
    """Require the productivities that computed parameters are made of."""
    productivities = _Productivities(case)
    for parameter in case.generic_constraints.parameters.values():
        is_specific = parameter.computed_tag == "specific_productivity"
        for hydro in _plants_of(case, parameter) if parameter.kind == "computed" else ():
            missing = productivities.first_missing(hydro, is_specific)
            if missing is not None:
                needed = "productivity (given, or geometry and specific productivity)"
                facts = {"value": hydro.id, "name": hydro.name, "stage": missing.id}
                facts["needed"] = "specific productivity" if is_specific else needed
                subject = named("parameter", parameter)
                findings.add(PARAMETER_WITHOUT_DATA, PARAMETERS_FILE, subject, "computed_spec", **facts)


class _Productivities:
    """Stages in which plants have productivities; a deck's parameters ask for the same plants again and again."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._specific = _tabulated(case, "specific_productivity_mw_per_m3s_per_m")
        self._equivalent = _tabulated(case, "equivalent_productivity_mw_per_m3s")
        self._with_geometry = geometry_points(case)
        self._missing: dict[tuple[int, bool], Stage | None] = {}

    def first_missing(self, hydro: Hydro, is_specific: bool) -> Stage | None:
        """Return the first stage without a (specific) productivity of the plant, None if all have one."""
        key = (hydro.id, is_specific)
        if key not in self._missing:
            stages = self._case.horizon.stages
            missing = self._without_specific(hydro, stages) if is_specific else self._without_any(hydro, stages)
            self._missing[key] = min(missing, key=lambda stage: stage.id, default=None)
        return self._missing[key]

    def _without_specific(self, hydro: Hydro, stages: Sequence[Stage]) -> Sequence[Stage]:
        is_given = hydro.specific_productivity_mw_per_m3s_per_m is not None
        return () if is_given else _by_value(self._specific, hydro.id, stages)[1]

    def _without_any(self, hydro: Hydro, stages: Sequence[Stage]) -> Sequence[Stage]:
        """Return stages without a productivity: of the choice, of the table, or from geometry and a specific one."""
        missing: list[Stage] = []
        for choice, of_choice in self._case.production.stages_by_choice(hydro, stages):
            if choice.model == "fpha" or choice.productivity_mw_per_m3s is None:
                missing += _by_value(self._equivalent, hydro.id, of_choice)[1]
        return self._without_specific(hydro, missing) if hydro.id in self._with_geometry else missing


def _plants_of(case: Case, parameter: Parameter) -> Iterator[Hydro]:
    """Yield the plants whose productivities a parameter is computed from."""
    hydros = {hydro.id: hydro for hydro in case.system.hydros}
    if parameter.computed_tag in (*OF_ONE_PLANT, "specific_productivity"):
        yield hydros[parameter.hydro_id or 0]
    at = parameter.hydro_id if parameter.computed_tag in OF_A_CASCADE else None
    while at is not None:
        yield hydros[at]
        at = hydros[at].downstream_id


def _tabulated(case: Case, name: str) -> frozenset[tuple[int, ...]]:
    """Return plants and stages (ABSENT_ID: all stages) with a value in hydro_energy_productivity.parquet."""
    table = case.production.energy_productivity
    if table is None:
        return frozenset()
    rows = zip(table["hydro_id"].tolist(), table["stage_id"].tolist(), table[name].tolist(), strict=True)
    return frozenset((hydro_id, stage_id) for hydro_id, stage_id, value in rows if not isnan(value))


def _by_value(
    tabulated: frozenset[tuple[int, ...]], hydro_id: int, stages: Sequence[Stage]
) -> tuple[Sequence[Stage], Sequence[Stage]]:
    """Return stages with a value for a plant in a table, its own or one of all stages, and those without."""
    if (hydro_id, ABSENT_ID) in tabulated:
        return stages, ()
    within = [stage for stage in stages if (hydro_id, stage.id) in tabulated]
    return within, [stage for stage in stages if (hydro_id, stage.id) not in tabulated]


COMPUTED_RULES: tuple[Rule, ...] = (planes_can_be_computed, parameters_can_be_computed)
