"""Inflows, loads and sources: statistics, lags and histories that can be used."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise

import numpy as np

from cobre.core.arrays import MONTHS_PER_YEAR
from cobre.core.case import Case, Table
from cobre.core.hydro import Hydro
from cobre.io.file_names import CONFIG_FILE
from cobre.io.input_files.entities import CONDITIONS_FILE
from cobre.io.input_files.entities import CONDITIONS_FILE as INITIAL_FILE
from cobre.io.input_files.stages_file import FILE as STAGES_FILE
from cobre.io.input_files.table_formats import SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, distinct, has_inflow_lags, named, with_ids
from cobre.wording import counted

HISTORY_FILE = SCENARIO_TABLES["inflow_history"].file

# By table: the entity's column, and columns with their minimum and maximum (None: no limit).
RANGES: dict[str, tuple[str, dict[str, tuple[float, float | None]]]] = {
    "inflow_seasonal_stats": ("hydro_id", {"std_m3s": (0.0, None)}),
    "load_seasonal_stats": ("bus_id", {"std_mw": (0.0, None)}),
    "non_controllable_stats": ("ncs_id", {"std": (0.0, None), "mean": (0.0, 1.0)}),
    "external_ncs_scenarios": ("ncs_id", {"availability_factor": (0.0, 1.0)}),
}


def numbers_in_range(case: Case, findings: Findings) -> None:
    """Standard deviations are not negative, and availabilities are from 0 to 1."""
    for name, (id_column, columns) in RANGES.items():
        table = getattr(case.scenarios, name)
        for column, (least, most) in columns.items() if table is not None else ():
            values = table[column]
            is_wrong = (values < least) | (values > (np.inf if most is None else most))
            for row in np.flatnonzero(is_wrong):
                entity = f"{id_column.removesuffix('_id')} {table[id_column][row]}, stage {table['stage_id'][row]}"
                remedy = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
                findings.error(SCENARIO_TABLES[name].file, entity, column, f"is {values[row]:g}", remedy)


def loads_below_zero(case: Case, findings: Findings) -> None:
    """Warn of negative loads: a random load below zero counts as 0, a deterministic one feeds its bus."""
    for name, column in (("load_seasonal_stats", "mean_mw"), ("external_load_scenarios", "value_mw")):
        table = getattr(case.scenarios, name)
        for (bus_id,) in distinct(table, "bus_id"):
            rows = table["bus_id"] == bus_id
            if (table[column][rows] < 0).any():
                is_certain = name == "load_seasonal_stats" and not (table["std_mw"][rows] > 0).any()
                effect = "the load feeds the bus" if is_certain else "the load counts as 0"
                message = f"is negative in some row, where {effect}"
                findings.warn(SCENARIO_TABLES[name].file, f"bus {bus_id}", column, message)


def factors_above_zero(case: Case, findings: Findings) -> None:
    """Block factors of load must be above zero."""
    kinds = (
        ("scenarios/load_factors.json", "bus", case.scenarios.load_factors),
        ("scenarios/non_controllable_factors.json", "source", case.scenarios.non_controllable_factors),
    )
    for file, word, factors in kinds:
        for (entity_id, stage_id), values in factors.items():
            for block, value in enumerate(values):
                if value <= 0:
                    entity, field = f"{word} {entity_id}, stage {stage_id}", f"block_factors (block {block}).factor"
                    findings.error(file, entity, field, f"is {value:g}", "a number above 0")


def lags_need_seasons(case: Case, findings: Findings) -> None:
    """Lags refer to seasons; without seasons the past would silently count as zero."""
    if not has_inflow_lags(case):
        return
    definitions = case.horizon.season_definitions
    if definitions is None:
        message = "is missing, but the inflow model has lags"
        findings.error(STAGES_FILE, "", "season_definitions", message, "define the twelve months as seasons")
    without = [stage.id for stage in case.horizon.stages if stage.season_id is None]
    if without and (definitions is None or definitions.cycle_type == "custom"):
        message = f"is missing in {with_ids('stage', without)}, but the inflow model has lags"
        findings.error(STAGES_FILE, "", "stages.season_id", message, "the season of each stage")


def lags_are_carried(case: Case, findings: Findings) -> None:
    """Warn where state_variables leaves lags out: cuts include them anyway, or the lower bound would be wrong."""
    if not has_inflow_lags(case):
        return
    without = [stage.id for stage in case.horizon.stages if not stage.state_variables.inflow_lags]
    if without:
        message = f"is false in {with_ids('stage', without)}, but inflows depend on lags: lags are in the state anyway"
        findings.warn(STAGES_FILE, "", "state_variables.inflow_lags", message, "true: a valid bound needs them")


def residual_ratios(case: Case, findings: Findings) -> None:
    """Warn of given residual ratios: they are computed from the coefficients, so that inflows keep their deviation."""
    table = case.scenarios.inflow_ar_coefficients
    if table is not None and not np.isnan(table["residual_std_ratio"]).all():
        file = SCENARIO_TABLES["inflow_ar_coefficients"].file
        message = "has no effect on a stationary process: it is derived, so that inflows keep their deviation"
        findings.warn(file, "", "residual_std_ratio", message)


def terms_of_earlier_stages(case: Case, findings: Findings) -> None:
    """Warn of pre-study statistics without coefficients: those of the study's stages of the same season are used."""
    statistics, terms = case.scenarios.inflow_seasonal_stats, case.scenarios.inflow_ar_coefficients
    if statistics is None or terms is None:
        return
    first = case.horizon.stages[0].id
    earlier = {(hydro, stage) for hydro, stage in distinct(statistics, "hydro_id", "stage_id") if stage < first}
    given = set(distinct(terms, "hydro_id", "stage_id"))
    later = {(hydro, stage % MONTHS_PER_YEAR) for hydro, stage in given if stage >= first}
    bare = sorted({stage for hydro, stage in earlier - given if (hydro, stage % MONTHS_PER_YEAR) in later})
    if bare:
        message = (
            f"{with_ids('stage', bare)}: statistics without coefficients; those of the study's stages of the same "
            "season count"
        )
        findings.warn(SCENARIO_TABLES["inflow_ar_coefficients"].file, "", "", message, "coefficients for them, too")


def annual_components(case: Case, findings: Findings) -> None:
    """An annual component needs monthly seasons."""
    table = case.scenarios.inflow_annual_component
    if table is None:
        return
    file = SCENARIO_TABLES["inflow_annual_component"].file
    if is_estimated(case) and case.scenarios.inflow_ar_coefficients is None:
        message = "is not used: all terms are estimated from history, the yearly one by order_selection pacf_annual"
        findings.warn(file, "", "", message)
    definitions = case.horizon.season_definitions
    if table["hydro_id"].size and definitions is not None and definitions.cycle_type != "monthly":
        message = f"an annual component needs monthly seasons, not {definitions.cycle_type} ones"
        findings.error(file, "", "", message, "season_definitions.cycle_type monthly, or no annual component")
    for row in np.flatnonzero(table["annual_std_m3s"] <= 0):
        entity = f"hydro {table['hydro_id'][row]}, stage {table['stage_id'][row]}"
        findings.error(file, entity, "annual_std_m3s", f"is {table['annual_std_m3s'][row]:g}", "a number above 0")


Window = tuple[date, date]


def _windows(case: Case) -> list[tuple[str, dict[int, list[Window]]]]:
    """Windows of dates by plant, in order, for each file that has them; a history only if some are faulty."""
    observed: dict[int, list[Window]] = {}
    for row in case.initial_conditions.recent_observations:
        observed.setdefault(row.hydro_id, []).append((row.start_date, row.end_date))
    recorded: dict[int, list[Window]] = {}
    table = case.scenarios.inflow_history
    if table is not None and _has_faulty_windows(table):
        days = (table[column].tolist() for column in ("start_date", "end_date"))
        for hydro_id, start, end in zip(table["hydro_id"].tolist(), *days, strict=True):
            recorded.setdefault(hydro_id, []).append((start, end))
    return [(INITIAL_FILE, observed), (HISTORY_FILE, recorded)]


def _has_faulty_windows(table: Table) -> bool:
    """Whether some window of a history ends before it starts, or begins before the one before has ended."""
    order = np.lexsort([table[name] for name in ("end_date", "start_date", "hydro_id")])
    hydro, start, end = (table[name][order] for name in ("hydro_id", "start_date", "end_date"))
    return bool((end <= start).any() or ((hydro[1:] == hydro[:-1]) & (start[1:] < end[:-1])).any())


def windows_of_dates(case: Case, findings: Findings) -> None:
    """Windows end after they start and do not overlap."""
    for file, by_hydro in _windows(case):
        for hydro_id, windows in by_hydro.items():
            for start, end in windows:
                if end <= start:
                    message = f"is {end}, not after start_date, which is {start}"
                    findings.error(file, f"hydro {hydro_id}", "end_date", message, "the first day after the window")
            for (_, end), (start, _) in pairwise(sorted(windows)):
                if start < end:
                    message = f"is {start}, but the window before ends on {end}"
                    findings.error(file, f"hydro {hydro_id}", "start_date", message, "windows that do not overlap")


def observations_before_the_study(case: Case, findings: Findings) -> None:
    """Recent observations lie before the study."""
    start = case.horizon.stages[0].start_date
    for row in case.initial_conditions.recent_observations:
        if row.end_date > start:
            message = f"is {row.end_date}, after the study starts on {start}"
            findings.error(INITIAL_FILE, f"hydro {row.hydro_id}", "recent_observations.end_date", message, f"{start}")
        if row.value_m3s < 0:
            message = f"is {row.value_m3s:g}: taken as incremental inflow, which may be negative"
            findings.warn(INITIAL_FILE, f"hydro {row.hydro_id}", "recent_observations.value_m3s", message)


def is_estimated(case: Case) -> bool:
    """Whether some part of the inflow model is fitted to history."""
    tables = case.scenarios
    has_history = tables.inflow_history is not None and tables.inflow_history["hydro_id"].size > 0
    return has_history and (tables.inflow_seasonal_stats is None or tables.inflow_ar_coefficients is None)


def history_to_estimate_from(case: Case, findings: Findings) -> None:
    """Estimation needs seasons, and some history of each plant."""
    if not is_estimated(case):
        return
    if case.horizon.season_definitions is None:
        message = "is missing, but the inflow model is to be estimated from history"
        findings.error(STAGES_FILE, "", "season_definitions", message, "define the twelve months as seasons")
    present = {hydro_id for (hydro_id,) in distinct(case.scenarios.inflow_history, "hydro_id")}
    for hydro in case.system.hydros:
        if hydro.id not in present:
            message = "has no rows, but its inflow model is to be estimated from them"
            findings.error(HISTORY_FILE, f"hydro {hydro.id} ({hydro.name})", "", message, "observations of each plant")


def enough_history(case: Case, findings: Findings) -> None:
    """Warn of histories too short for good estimates."""
    table = case.scenarios.inflow_history
    if table is None or not is_estimated(case):
        return
    least = case.config.estimation.min_observations_per_season
    hydro_ids, plant = np.unique(table["hydro_id"], return_inverse=True)
    months = table["start_date"].astype("datetime64[M]").astype(int) % MONTHS_PER_YEAR
    shape = (len(hydro_ids), MONTHS_PER_YEAR)
    counts = np.bincount(plant * MONTHS_PER_YEAR + months, minlength=shape[0] * shape[1]).reshape(shape)
    for hydro_id, fewest in zip(hydro_ids.tolist(), counts.min(axis=1).tolist(), strict=True):
        if fewest < least:
            message = f"some months have only {counted(fewest, 'observation')}; {least} are recommended"
            findings.warn(HISTORY_FILE, f"hydro {hydro_id}", "", message, f"see estimation in {CONFIG_FILE}")


RULES: tuple[Rule, ...] = (
    numbers_in_range,
    loads_below_zero,
    factors_above_zero,
    lags_need_seasons,
    lags_are_carried,
    residual_ratios,
    terms_of_earlier_stages,
    annual_components,
    windows_of_dates,
    observations_before_the_study,
    history_to_estimate_from,
    enough_history,
)


# Inflows before the study on which its first stages depend must be known for every day.


Period = tuple[date, date]


def initial_lags_are_known(case: Case, findings: Findings) -> None:
    """Check the lags of given models; models fitted to history take their past from it."""
    definitions = case.horizon.season_definitions
    if definitions is None or definitions.cycle_type != "monthly" or len(definitions.seasons) != MONTHS_PER_YEAR:
        return
    reads = _reads(case)
    for hydro in case.system.hydros:
        missing = [lag for lag in sorted(reads.get(hydro.id, ())) if not _is_covered(case, hydro, _period(case, lag))]
        if missing:
            first, last = _period(case, missing[-1])[0], _period(case, missing[0])[1]
            message = (
                f"the first stages need {with_ids('lag', missing)}, but not every day "
                f"from {first} to {last} (exclusive) is covered"
            )
            remedy = f"windows for them, here or in {HISTORY_FILE}"
            findings.error(CONDITIONS_FILE, named("hydro", hydro), "recent_observations", message, remedy)


def _reads(case: Case) -> dict[int, set[int]]:
    """By hydro: the months before the study on which the inflow of some stage depends, counted back from 1."""
    found: dict[int, set[int]] = {}
    for hydro_id, stage_id, lag in _terms(case):
        position = stage_id - case.horizon.stages[0].id
        month = lag - position
        if position >= 0 and month >= 1 and _has_statistics(case, hydro_id, stage_id - lag, month):
            found.setdefault(hydro_id, set()).add(month)
    return found


def _terms(case: Case) -> Iterator[tuple[int, int, int]]:
    """Hydro, stage and lag of every coefficient that is not zero; a yearly component has twelve lags."""
    table, annual = case.scenarios.inflow_ar_coefficients, case.scenarios.inflow_annual_component
    if table is None and is_estimated(case):
        return
    if table is not None:
        rows = table["coefficient"] != 0.0
        yield from zip(*(table[name][rows].tolist() for name in ("hydro_id", "stage_id", "lag")), strict=True)
    if annual is not None:
        rows = annual["annual_coefficient"] != 0.0
        for hydro_id, stage_id in zip(*(annual[name][rows].tolist() for name in ("hydro_id", "stage_id")), strict=True):
            yield from ((hydro_id, stage_id, lag) for lag in range(1, MONTHS_PER_YEAR + 1))


def _has_statistics(case: Case, hydro_id: int, stage_id: int, month: int) -> bool:
    """Whether the season of a month before the study has a deviation: a lag without one takes no part."""
    table = case.scenarios.inflow_seasonal_stats
    if table is None or is_estimated(case):
        return is_estimated(case)  # the history has every season
    number = _period(case, month)[0].month
    same_month = [stage.id for stage in case.horizon.stages if stage.start_date.month == number]
    rows = (table["hydro_id"] == hydro_id) & np.isin(table["stage_id"], [stage_id, *same_month])
    return bool((table["std_m3s"][rows] > 0.0).any())


def _period(case: Case, lag: int) -> Period:
    """The `lag`-th month before the month in which the study starts."""
    end = case.horizon.stages[0].start_date.replace(day=1)
    for _ in range(lag - 1):
        end = (end - timedelta(days=1)).replace(day=1)
    start = (end - timedelta(days=1)).replace(day=1)
    return start, start + timedelta(days=monthrange(start.year, start.month)[1])


def _is_covered(case: Case, hydro: Hydro, period: Period) -> bool:
    reached, end = period
    for first, after in sorted(_lag_windows(case, hydro)):
        if first <= reached < after:
            reached = after
    return reached >= end


def _lag_windows(case: Case, hydro: Hydro) -> Iterator[Period]:
    for row in case.initial_conditions.recent_observations:
        if row.hydro_id == hydro.id:
            yield row.start_date, row.end_date
    table = case.scenarios.inflow_history
    if table is not None:
        rows = table["hydro_id"] == hydro.id
        yield from zip(table["start_date"][rows].tolist(), table["end_date"][rows].tolist(), strict=True)


INITIAL_LAG_RULES: tuple[Rule, ...] = (initial_lags_are_known,)
