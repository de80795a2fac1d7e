"""Observed inflows: windows of days, and what they say season by season and year by year."""

from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from cobre.core.case import Case
from cobre.stochastic.errors import NoiseModelError

HISTORY_FILE = "scenarios/inflow_history.parquet"


class Window(NamedTuple):
    """A mean inflow over some days; `end_date` is the first day after them."""

    start_date: date
    end_date: date
    value_m3s: float


def history_windows(case: Case) -> Mapping[int, list[Window]]:
    """The windows of each hydro that has any, in order of time; overlaps are refused."""
    table = case.scenarios.inflow_history
    by_hydro: dict[int, list[Window]] = {}
    if table is None:
        return by_hydro
    columns = [table[name].tolist() for name in ("hydro_id", "start_date", "end_date", "value_m3s")]
    known = {hydro.id for hydro in case.system.hydros}
    for hydro_id, start, end, value in zip(*columns, strict=True):
        if hydro_id not in known or end <= start:
            raise NoiseModelError(
                HISTORY_FILE,
                f"hydro_id {hydro_id}, start_date {start}",
                "needs the id of a hydro and an end_date after its start_date",
            )
        by_hydro.setdefault(hydro_id, []).append(Window(start, end, value))
    for hydro_id, windows in by_hydro.items():
        windows.sort()
        _refuse_overlaps(hydro_id, windows)
    return by_hydro


def _refuse_overlaps(hydro_id: int, windows: list[Window]) -> None:
    for earlier, later in pairwise(windows):
        if later.start_date < earlier.end_date:
            raise NoiseModelError(
                HISTORY_FILE,
                f"hydro_id {hydro_id}, start_date {later.start_date}",
                f"the window overlaps the one that starts on {earlier.start_date}",
            )
