"""Tables of scenarios/: statistics of inflows, loads and sources, lags and histories that can be used."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise

import numpy as np

from cobre.core.arrays import MONTHS_PER_YEAR, distinct_values
from cobre.core.case import Case, Table
from cobre.core.file_names import CONDITIONS_FILE, CONFIG_FILE, HYDROS_FILE, STAGES_FILE
from cobre.core.hydro import Hydro
from cobre.io.findings import (
    Findings,
    IdList,
    Layer,
    about,
    error_code,
    named,
    stages,
    warning_code,
)
from cobre.io.validation.rules import (
    END_NOT_AFTER_START,
    ENDS_AFTER_STUDY_START,
    NOT_POSITIVE,
    OUT_OF_RANGE,
    SCENARIOS,
    Rule,
    distinct,
    has_inflow_lags,
    repeats,
    rule,
)
from cobre.text import counted

HISTORY = SCENARIOS["inflow_history"]
STATISTICS = SCENARIOS["inflow_seasonal_stats"]
COEFFICIENTS = SCENARIOS["inflow_ar_coefficients"]
ANNUAL = SCENARIOS["inflow_annual_component"]
ESTIMATED_FROM = (HISTORY, STATISTICS, COEFFICIENTS)
LAG_INPUTS = (HYDROS_FILE, COEFFICIENTS, ANNUAL, HISTORY, CONFIG_FILE)

# A row for every stage.

BY_ENTITY = {
    "inflow_seasonal_stats": "hydro_id",
    "load_seasonal_stats": "bus_id",
    "non_controllable_stats": "ncs_id",
    "inflow_annual_component": "hydro_id",
}

STATISTICS_MISSING = error_code(
    "statistics-missing",
    Layer.DIMENSIONS,
    "there is no row for {value}",
    expected="one row for each stage",
)

NO_INFLOW = warning_code("plant-without-inflow", Layer.DIMENSIONS, "has no rows: its natural inflow is 0")

LAGS_WITH_GAP = error_code(
    "lags-with-gap", Layer.DIMENSIONS, "the lags are {value}", expected="1, 2, ... without a gap"
)


@rule(STAGES_FILE, iterated=[SCENARIOS[name] for name in BY_ENTITY])
def statistics_of_every_stage(case: Case, findings: Findings) -> None:
    """Require statistics of all stages for an entity that has some; without any, its inflow or load is 0."""
    stage_ids = {stage.id for stage in case.horizon.stages}
    for name, column in BY_ENTITY.items():
        table = getattr(case.scenarios, name)
        if table is None or _has_all_stages(table, column, stage_ids):
            continue
        stages_by_entity: dict[int, set[int]] = {}
        for entity_id, stage_id in distinct(table, column, "stage_id"):
            stages_by_entity.setdefault(entity_id, set()).add(stage_id)
        for entity_id, present in stages_by_entity.items():
            if stage_ids - present:
                subject = about(column.removesuffix("_id"), entity_id)
                findings.add(
                    STATISTICS_MISSING, SCENARIOS[name], subject, "stage_id", value=stages(stage_ids - present)
                )


def _has_all_stages(table: Table, column: str, stage_ids: set[int]) -> bool:
    """Return whether every entity of a table, which is sorted, has a row for every stage."""
    is_study = np.isin(table["stage_id"], list(stage_ids))
    entities = [table[column][is_study], table["stage_id"][is_study]]
    is_first = np.append(np.ones(min(1, len(entities[0])), np.bool_), ~repeats(entities))
    present = np.unique(entities[0][is_first], return_counts=True)
    return len(present[0]) == len(distinct_values(table[column])) and bool((present[1] == len(stage_ids)).all())


@rule(HYDROS_FILE, STATISTICS, HISTORY, SCENARIOS["external_inflow_scenarios"])
def plants_without_inflow(case: Case, findings: Findings) -> None:
    """Warn of plants without any row of inflow: they have none."""
    tables = case.scenarios
    if tables.inflow_history is not None or tables.external_inflow_scenarios is not None:
        return
    present = {hydro_id for (hydro_id,) in distinct(tables.inflow_seasonal_stats, "hydro_id")}
    for hydro in case.system.hydros:
        if hydro.id not in present:
            findings.add(NO_INFLOW, STATISTICS, named("hydro", hydro))


@rule(COEFFICIENTS)
def lags_count_from_one(case: Case, findings: Findings) -> None:
    """Require coefficients for lags 1, 2, ..., p."""
    lags: dict[tuple[int, int], list[int]] = {}
    for hydro_id, stage_id, lag in distinct(case.scenarios.inflow_ar_coefficients, "hydro_id", "stage_id", "lag"):
        lags.setdefault((hydro_id, stage_id), []).append(lag)
    for (hydro_id, stage_id), numbers in lags.items():
        if numbers != list(range(1, len(numbers) + 1)):
            subject = about("hydro", hydro_id, "stage", stage_id)
            findings.add(LAGS_WITH_GAP, COEFFICIENTS, subject, "lag", value=", ".join(map(str, numbers)))


DIMENSION_RULES: tuple[Rule, ...] = (statistics_of_every_stage, plants_without_inflow, lags_count_from_one)

# Numbers of the tables.

# By table: the entity's column, and columns with their minimum and maximum (None: no limit).
RANGES: dict[str, tuple[str, dict[str, tuple[float, float | None]]]] = {
    "inflow_seasonal_stats": ("hydro_id", {"std_m3s": (0.0, None)}),
    "load_seasonal_stats": ("bus_id", {"std_mw": (0.0, None)}),
    "non_controllable_stats": ("ncs_id", {"std": (0.0, None), "mean": (0.0, 1.0)}),
    "external_ncs_scenarios": ("ncs_id", {"availability_factor": (0.0, 1.0)}),
}

NEGATIVE_LOAD = warning_code("negative-load", Layer.MEANING, "is negative in some row, where {effect}")

LAGS_WITHOUT_SEASONS = error_code(
    "lags-without-seasons",
    Layer.MEANING,
    "is missing, but the inflow model has lags",
    remedy="define the twelve months as seasons",
)

STAGES_WITHOUT_SEASON = error_code(
    "stages-without-season",
    Layer.MEANING,
    "is missing in {value}, but the inflow model has lags",
    expected="the season of each stage",
)

LAGS_NOT_IN_STATE = warning_code(
    "lags-not-in-state",
    Layer.MEANING,
    "is false in {value}, but inflows depend on lags: lags are in the state anyway",
    expected="true: a valid bound needs them",
)

RESIDUAL_RATIO = warning_code(
    "residual-ratio-without-effect",
    Layer.MEANING,
    "has no effect on a stationary process: it is derived, so that inflows keep their deviation",
)

NO_COEFFICIENTS_BEFORE = warning_code(
    "pre-study-coefficients-missing",
    Layer.MEANING,
    "{value}: statistics without coefficients; those of the study's stages of the same season count",
    expected="coefficients for them, too",
)

ANNUAL_NOT_USED = warning_code(
    "annual-component-not-used",
    Layer.MEANING,
    "is not used: all terms are estimated from history, the yearly one by order_selection pacf_annual",
)

ANNUAL_SEASONS = error_code(
    "annual-component-seasons",
    Layer.MEANING,
    "an annual component needs monthly seasons, not {value} ones",
    expected="season_definitions.cycle_type monthly, or no annual component",
)


@rule(iterated=[SCENARIOS[name] for name in RANGES])
def numbers_in_range(case: Case, findings: Findings) -> None:
    """Refuse negative standard deviations, and availabilities beyond 0 to 1."""
    for name, (id_column, columns) in RANGES.items():
        table = getattr(case.scenarios, name)
        for column, (minimum, maximum) in columns.items() if table is not None else ():
            values = table[column]
            expected = f"at least {minimum:g}" if maximum is None else f"between {minimum:g} and {maximum:g}"
            for row in np.flatnonzero((values < minimum) | (values > (np.inf if maximum is None else maximum))):
                kind, stage_id = id_column.removesuffix("_id"), int(table["stage_id"][row])
                subject = about(kind, int(table[id_column][row]), "stage", stage_id)
                findings.add(OUT_OF_RANGE, SCENARIOS[name], subject, column, value=values[row], range=expected)


@rule(iterated=(SCENARIOS["load_seasonal_stats"], SCENARIOS["external_load_scenarios"]))
def loads_below_zero(case: Case, findings: Findings) -> None:
    """Warn of negative loads: a random load below zero counts as 0, a deterministic one feeds its bus."""
    for name, column in (("load_seasonal_stats", "mean_mw"), ("external_load_scenarios", "value_mw")):
        table = getattr(case.scenarios, name)
        if table is None or not (table[column] < 0).any():
            continue
        for bus_id in distinct_values(table["bus_id"][table[column] < 0]).tolist():
            is_random = name != "load_seasonal_stats" or bool((table["std_mw"][table["bus_id"] == bus_id] > 0).any())
            effect = "the load counts as 0" if is_random else "the load feeds the bus"
            findings.add(NEGATIVE_LOAD, SCENARIOS[name], about("bus", bus_id), column, effect=effect)


@rule(STAGES_FILE, *LAG_INPUTS)
def lags_need_seasons(case: Case, findings: Findings) -> None:
    """Require seasons if inflows have lags; without them the past would silently count as zero."""
    if not has_inflow_lags(case):
        return
    definitions = case.horizon.season_definitions
    if definitions is None:
        findings.add(LAGS_WITHOUT_SEASONS, STAGES_FILE, (), "season_definitions")
    without = [stage.id for stage in case.horizon.stages if stage.season_id is None]
    if without and (definitions is None or definitions.cycle_type == "custom"):
        findings.add(STAGES_WITHOUT_SEASON, STAGES_FILE, (), "stages.season_id", value=stages(without))


@rule(STAGES_FILE, *LAG_INPUTS)
def lags_are_carried(case: Case, findings: Findings) -> None:
    """Warn where state_variables leaves lags out: cuts include them anyway, or the lower bound would be wrong."""
    if has_inflow_lags(case):
        without = [stage.id for stage in case.horizon.stages if not stage.state_variables.inflow_lags]
        if without:
            findings.add(LAGS_NOT_IN_STATE, STAGES_FILE, (), "state_variables.inflow_lags", value=stages(without))


@rule(COEFFICIENTS)
def residual_ratios(case: Case, findings: Findings) -> None:
    """Warn of given residual ratios: they are computed from the coefficients, so that inflows keep their deviation."""
    table = case.scenarios.inflow_ar_coefficients
    if table is not None and not np.isnan(table["residual_std_ratio"]).all():
        findings.add(RESIDUAL_RATIO, COEFFICIENTS, (), "residual_std_ratio")


@rule(STAGES_FILE, STATISTICS, COEFFICIENTS)
def terms_of_earlier_stages(case: Case, findings: Findings) -> None:
    """Warn of pre-study statistics without coefficients: those of the study's stages of the same season are used."""
    statistics, terms = case.scenarios.inflow_seasonal_stats, case.scenarios.inflow_ar_coefficients
    if statistics is None or terms is None:
        return
    first = case.horizon.stages[0].id
    is_earlier = statistics["stage_id"] < first
    if not is_earlier.any():
        return
    before = {name: statistics[name][is_earlier] for name in ("hydro_id", "stage_id")}
    rows = set(distinct(terms, "hydro_id", "stage_id"))
    later = {(hydro, stage % MONTHS_PER_YEAR) for hydro, stage in rows if stage >= first}
    without = set(distinct(before, "hydro_id", "stage_id")) - rows
    bare = {stage for hydro, stage in without if (hydro, stage % MONTHS_PER_YEAR) in later}
    if bare:
        findings.add(NO_COEFFICIENTS_BEFORE, COEFFICIENTS, value=stages(bare))


@rule(STAGES_FILE, ANNUAL, *ESTIMATED_FROM)
def annual_components(case: Case, findings: Findings) -> None:
    """Require monthly seasons for an annual component."""
    table = case.scenarios.inflow_annual_component
    if table is None:
        return
    if _is_estimated(case) and case.scenarios.inflow_ar_coefficients is None:
        findings.add(ANNUAL_NOT_USED, ANNUAL)
    definitions = case.horizon.season_definitions
    if table["hydro_id"].size and definitions is not None and definitions.cycle_type != "monthly":
        findings.add(ANNUAL_SEASONS, ANNUAL, value=definitions.cycle_type)
    for row in np.flatnonzero(table["annual_std_m3s"] <= 0):
        subject = about("hydro", int(table["hydro_id"][row]), "stage", int(table["stage_id"][row]))
        findings.add(NOT_POSITIVE, ANNUAL, subject, "annual_std_m3s", value=table["annual_std_m3s"][row])


# Observations and histories.

Window = tuple[date, date]

OBSERVATIONS_OVERLAP = error_code(
    "observations-overlap",
    Layer.MEANING,
    "is {value}, but the window before ends on {end}",
    expected="windows that do not overlap",
)

NEGATIVE_OBSERVATION = warning_code(
    "negative-observation",
    Layer.MEANING,
    "is {value:g}: taken as incremental inflow, which may be negative",
)

ESTIMATION_WITHOUT_SEASONS = error_code(
    "estimation-without-seasons",
    Layer.MEANING,
    "is missing, but the inflow model is to be estimated from history",
    remedy="define the twelve months as seasons",
)

PLANT_WITHOUT_HISTORY = error_code(
    "plant-without-history",
    Layer.MEANING,
    "has no rows, but its inflow model is to be estimated from them",
    expected="observations of each plant",
)

SHORT_HISTORY = warning_code(
    "short-history",
    Layer.MEANING,
    "some months have only {observations}; {least} are recommended",
    remedy=f"see estimation in {CONFIG_FILE}",
)

LAGS_NOT_COVERED = error_code(
    "lags-not-covered",
    Layer.MEANING,
    "the first stages need {value}, but not every day from {first} to {last} (exclusive) is covered",
    expected=f"windows for them, here or in {HISTORY}",
)


@rule(iterated=(CONDITIONS_FILE, HISTORY))
def windows_of_dates(case: Case, findings: Findings) -> None:
    """Require windows that end after they start and do not overlap."""
    for file, by_hydro in _windows(case):
        for hydro_id, windows in by_hydro.items():
            subject = about("hydro", hydro_id)
            for start, end in windows:
                if end <= start:
                    facts = {"value": end, "start": start, "period": "window"}
                    findings.add(END_NOT_AFTER_START, file, subject, "end_date", **facts)
            for (_, end), (start, _) in pairwise(sorted(windows)):
                if start < end:
                    findings.add(OBSERVATIONS_OVERLAP, file, subject, "start_date", value=start, end=end)


def _windows(case: Case) -> list[tuple[str, dict[int, list[Window]]]]:
    """Return windows of dates by plant, in order, for each file that has them; a history only if some are faulty."""
    observed: dict[int, list[Window]] = {}
    for row in case.initial_conditions.recent_observations:
        observed.setdefault(row.hydro_id, []).append((row.start_date, row.end_date))
    recorded: dict[int, list[Window]] = {}
    table = case.scenarios.inflow_history
    if table is not None and _has_faulty_windows(table):
        days = (table[column].tolist() for column in ("start_date", "end_date"))
        for hydro_id, start, end in zip(table["hydro_id"].tolist(), *days, strict=True):
            recorded.setdefault(hydro_id, []).append((start, end))
    return [(CONDITIONS_FILE, observed), (HISTORY, recorded)]


def _has_faulty_windows(table: Table) -> bool:
    """Return whether a window of a history ends before it starts, or begins before the one before has ended."""
    order = np.lexsort([table[name] for name in ("end_date", "start_date", "hydro_id")])
    hydro, start, end = (table[name][order] for name in ("hydro_id", "start_date", "end_date"))
    return bool((end <= start).any() or ((hydro[1:] == hydro[:-1]) & (start[1:] < end[:-1])).any())


@rule(STAGES_FILE, CONDITIONS_FILE)
def observations_before_the_study(case: Case, findings: Findings) -> None:
    """Require recent observations before the study, and warn of negative ones."""
    start, field = case.horizon.stages[0].start_date, "recent_observations"
    for row in case.initial_conditions.recent_observations:
        if row.end_date > start:
            subject, facts = about("hydro", row.hydro_id), {"value": row.end_date, "start": start}
            findings.add(ENDS_AFTER_STUDY_START, CONDITIONS_FILE, subject, f"{field}.end_date", **facts)
        if row.value_m3s < 0:
            subject = about("hydro", row.hydro_id)
            findings.add(NEGATIVE_OBSERVATION, CONDITIONS_FILE, subject, f"{field}.value_m3s", value=row.value_m3s)


def _is_estimated(case: Case) -> bool:
    """Return whether some part of the inflow model is fitted to history."""
    tables = case.scenarios
    has_history = tables.inflow_history is not None and tables.inflow_history["hydro_id"].size > 0
    return has_history and (tables.inflow_seasonal_stats is None or tables.inflow_ar_coefficients is None)


@rule(STAGES_FILE, HYDROS_FILE, *ESTIMATED_FROM)
def history_to_estimate_from(case: Case, findings: Findings) -> None:
    """Require seasons, and some history of each plant, for estimation."""
    if not _is_estimated(case):
        return
    if case.horizon.season_definitions is None:
        findings.add(ESTIMATION_WITHOUT_SEASONS, STAGES_FILE, (), "season_definitions")
    present = {hydro_id for (hydro_id,) in distinct(case.scenarios.inflow_history, "hydro_id")}
    for hydro in case.system.hydros:
        if hydro.id not in present:
            findings.add(PLANT_WITHOUT_HISTORY, HISTORY, named("hydro", hydro))


@rule(CONFIG_FILE, *ESTIMATED_FROM)
def enough_history(case: Case, findings: Findings) -> None:
    """Warn of histories too short for good estimates."""
    table = case.scenarios.inflow_history
    if table is None or not _is_estimated(case):
        return
    minimum = case.config.estimation.min_observations_per_season
    hydro_ids, plant = np.unique(table["hydro_id"], return_inverse=True)
    months = table["start_date"].astype("datetime64[M]").astype(int) % MONTHS_PER_YEAR
    shape = (len(hydro_ids), MONTHS_PER_YEAR)
    counts = np.bincount(plant * MONTHS_PER_YEAR + months, minlength=shape[0] * shape[1]).reshape(shape)
    for hydro_id, fewest in zip(hydro_ids.tolist(), counts.min(axis=1).tolist(), strict=True):
        if fewest < minimum:
            facts = {"value": fewest, "observations": counted(fewest, "observation"), "least": minimum}
            findings.add(SHORT_HISTORY, HISTORY, about("hydro", hydro_id), **facts)


# Inflows before the study on which its first stages depend must be known for every day.


@rule(STAGES_FILE, HYDROS_FILE, CONDITIONS_FILE, ANNUAL, *ESTIMATED_FROM)
def initial_lags_are_known(case: Case, findings: Findings) -> None:
    """Require the lags of given models; models fitted to history take their past from it."""
    definitions = case.horizon.season_definitions
    if definitions is None or definitions.cycle_type != "monthly" or len(definitions.seasons) != MONTHS_PER_YEAR:
        return
    needed = _needed_months(case)
    for hydro in case.system.hydros if needed else ():
        months = sorted(needed.get(hydro.id, ()))
        missing = [month for month in months if not _is_covered(case, hydro, _month_before(case, month))]
        if missing:
            first, last = _month_before(case, missing[-1])[0], _month_before(case, missing[0])[1]
            facts = {"value": IdList(missing, "lag"), "first": first, "last": last}
            findings.add(LAGS_NOT_COVERED, CONDITIONS_FILE, named("hydro", hydro), "recent_observations", **facts)


def _needed_months(case: Case) -> dict[int, set[int]]:
    """Return by hydro the months before the study on which the inflow of some stage depends, counted back from 1."""
    months: dict[int, set[int]] = {}
    for hydro_id, stage_id, lag in _terms(case):
        position = stage_id - case.horizon.stages[0].id
        month = lag - position
        if position >= 0 and month >= 1 and _has_statistics(case, hydro_id, stage_id - lag, month):
            months.setdefault(hydro_id, set()).add(month)
    return months


def _terms(case: Case) -> Iterator[tuple[int, int, int]]:
    """Yield hydro, stage and lag of every coefficient that is not zero; a yearly component has twelve lags."""
    table, annual = case.scenarios.inflow_ar_coefficients, case.scenarios.inflow_annual_component
    if table is None and _is_estimated(case):
        return
    if table is not None:
        rows = table["coefficient"] != 0.0
        yield from zip(*(table[name][rows].tolist() for name in ("hydro_id", "stage_id", "lag")), strict=True)
    if annual is not None:
        rows = annual["annual_coefficient"] != 0.0
        for hydro_id, stage_id in zip(*(annual[name][rows].tolist() for name in ("hydro_id", "stage_id")), strict=True):
            yield from ((hydro_id, stage_id, lag) for lag in range(1, MONTHS_PER_YEAR + 1))


def _has_statistics(case: Case, hydro_id: int, stage_id: int, month: int) -> bool:
    """Return whether the season of a month before the study has a deviation: a lag without one takes no part."""
    table = case.scenarios.inflow_seasonal_stats
    if table is None or _is_estimated(case):
        return _is_estimated(case)  # the history has every season
    number = _month_before(case, month)[0].month
    same_month = [stage.id for stage in case.horizon.stages if stage.start_date.month == number]
    rows = (table["hydro_id"] == hydro_id) & np.isin(table["stage_id"], [stage_id, *same_month])
    return bool((table["std_m3s"][rows] > 0.0).any())


def _month_before(case: Case, count: int) -> Window:
    """Return the `count`-th month before the month in which the study starts."""
    end = case.horizon.stages[0].start_date.replace(day=1)
    for _ in range(count - 1):
        end = (end - timedelta(days=1)).replace(day=1)
    start = (end - timedelta(days=1)).replace(day=1)
    return start, start + timedelta(days=monthrange(start.year, start.month)[1])


def _is_covered(case: Case, hydro: Hydro, period: Window) -> bool:
    reached, end = period
    for first, after in sorted(_known_windows(case, hydro)):
        if first <= reached < after:
            reached = after
    return reached >= end


def _known_windows(case: Case, hydro: Hydro) -> Iterator[Window]:
    for row in case.initial_conditions.recent_observations:
        if row.hydro_id == hydro.id:
            yield row.start_date, row.end_date
    table = case.scenarios.inflow_history
    if table is not None:
        rows = table["hydro_id"] == hydro.id
        yield from zip(table["start_date"][rows].tolist(), table["end_date"][rows].tolist(), strict=True)


RULES: tuple[Rule, ...] = (
    numbers_in_range,
    loads_below_zero,
    lags_need_seasons,
    lags_are_carried,
    residual_ratios,
    terms_of_earlier_stages,
    annual_components,
    windows_of_dates,
    observations_before_the_study,
    history_to_estimate_from,
    enough_history,
    initial_lags_are_known,
)
