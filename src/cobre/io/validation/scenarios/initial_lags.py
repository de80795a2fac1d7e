"""Inflows before the study on which its first stages depend must be known for every day."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from cobre.core.case import Case
from cobre.core.hydro import Hydro
from cobre.core.units import MONTHS_PER_YEAR
from cobre.io.input_files.initial_conditions import FILE
from cobre.io.input_files.table_formats import SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, named, with_ids
from cobre.io.validation.scenarios.inflows import is_estimated

Period = tuple[date, date]
HISTORY_FILE = SCENARIO_TABLES["inflow_history"].file


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
            findings.error(FILE, named("hydro", hydro), "recent_observations", message, remedy)


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
    for first, after in sorted(_windows(case, hydro)):
        if first <= reached < after:
            reached = after
    return reached >= end


def _windows(case: Case, hydro: Hydro) -> Iterator[Period]:
    for row in case.initial_conditions.recent_observations:
        if row.hydro_id == hydro.id:
            yield row.start_date, row.end_date
    table = case.scenarios.inflow_history
    if table is not None:
        rows = table["hydro_id"] == hydro.id
        yield from zip(table["start_date"][rows].tolist(), table["end_date"][rows].tolist(), strict=True)


RULES: tuple[Rule, ...] = (initial_lags_are_known,)
