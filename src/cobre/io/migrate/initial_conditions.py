"""initial_conditions.json: past inflows become dated windows."""

from datetime import date, timedelta

from cobre.io.migrate.old_case import Json, Notes, OldCase, first_of_month, is_month, month_after

FILE = "initial_conditions.json"
HISTORY = "scenarios/inflow_history.parquet"


def convert_initial_conditions(case: OldCase, notes: Notes) -> None:
    """Convert initial_conditions.json; the inflow history must have been converted before."""
    conditions = case.documents[FILE]
    conditions.setdefault("storage", [])
    conditions.setdefault("filling_storage", [])
    past = conditions.pop("past_inflows", None)
    if not past:
        return
    observations = conditions.setdefault("recent_observations", [])
    count = max(len(row.get("values_m3s", [])) for row in past)
    windows = _windows_before(case, count, notes)
    for row in past:
        _add_windows(case, row, windows, observations, notes)
    notes.converted(
        FILE,
        f"past_inflows are now windows of recent_observations, back to {windows[-1][0]}"
        if windows
        else "past_inflows were empty",
    )


def _windows_before(case: OldCase, count: int, notes: Notes) -> list[tuple[date, date]]:
    """The periods of lags 1, 2, ... before the study: pre-study stages, else months, else as long as a stage."""
    declared = {stage["id"]: stage for stage in case.entities("stages.json", "pre_study_stages")}
    windows: list[tuple[date, date]] = []
    end = case.start_date
    for lag in range(1, count + 1):
        stage = declared.get(-lag)
        start = date.fromisoformat(stage["start_date"]) if stage else _start_before(case, end)
        if not start < end:
            start = _start_before(case, end)
        windows.append((start, end))
        end = start
    if count and not all(-lag in declared for lag in range(1, count + 1)):
        notes.guessed(FILE, "the dates of past inflows: as long as the stages of the study, one before the other")
    return windows


def _start_before(case: OldCase, end: date) -> date:
    first = case.stages[0]
    start, stop = date.fromisoformat(first["start_date"]), date.fromisoformat(first["end_date"])
    if is_month(start, stop) and end.day == 1:
        return first_of_month(end - timedelta(days=1))
    return end - (stop - start)


def _add_windows(
    case: OldCase, row: Json, windows: list[tuple[date, date]], observations: list[Json], notes: Notes
) -> None:
    hydro_id = row["hydro_id"]
    taken = [*_recorded(case, hydro_id), *_observed(observations, hydro_id)]
    for (start, end), value in zip(windows, row.get("values_m3s", []), strict=False):
        if any(other_start < end and start < other_end for other_start, other_end in taken):
            text = f"hydro {hydro_id}: the past inflow of {start} ({value:g} m3/s), which other records cover"
            notes.dropped(FILE, text)
        else:
            window = {"hydro_id": hydro_id, "start_date": str(start), "end_date": str(end), "value_m3s": value}
            observations.append(window)


def _observed(observations: list[Json], hydro_id: int) -> list[tuple[date, date]]:
    own = (row for row in observations if row["hydro_id"] == hydro_id)
    return [(date.fromisoformat(row["start_date"]), date.fromisoformat(row["end_date"])) for row in own]


def _recorded(case: OldCase, hydro_id: int) -> list[tuple[date, date]]:
    table = case.tables.get(HISTORY)
    if table is None:
        return []
    rows = table.select(["hydro_id", "start_date", "end_date"]).to_pylist()
    return [(row["start_date"], row["end_date"]) for row in rows if row["hydro_id"] == hydro_id]


def windows_of_history(dates: list[date]) -> list[tuple[date, date]]:
    """The window of each dated observation of one plant: its month, or the time until the next observation."""
    months = [first_of_month(day) for day in dates]
    if len(set(months)) == len(months):
        return [(start, month_after(start)) for start in months]
    ordered = sorted(dates)
    following = dict(zip(ordered, [*ordered[1:], ordered[-1] + (ordered[-1] - ordered[-2])], strict=True))
    return [(day, following[day]) for day in dates]
