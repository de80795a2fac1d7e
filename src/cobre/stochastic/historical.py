"""Historical scenarios: years of observed inflows, replayed from the study's first season on."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.case_file_names import CONFIG_FILE
from cobre.records import dataclass
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.par.history import HISTORY_FILE
from cobre.stochastic.par.observations import Observations, observations
from cobre.stochastic.par.seasons import SeasonCycle
from cobre.stochastic.par.stage_periods import StagePeriods


@dataclass(frozen=True, slots=True)
class HistoricalLibrary:
    """`values` (stage, window, hydro) of the windows that start in these years."""

    years: tuple[int, ...]
    values: Floats


def historical_library(case: Case, cycle: SeasonCycle, wanted: tuple[int, ...] | None) -> HistoricalLibrary:
    """The windows that history covers for every hydro at every stage; `wanted` None: all of them."""
    history = observations(case, cycle)
    windows = {year: _window(case, cycle, history, year) for year in history.years}
    complete = tuple(year for year, values in windows.items() if np.isfinite(values).all())
    if wanted is not None:
        _refuse_missing(wanted, complete)
        complete = tuple(sorted(set(wanted)))
    if not complete:
        raise NoiseModelError(HISTORY_FILE, "years", "no year of history covers all hydros and seasons of the study")
    return HistoricalLibrary(complete, np.stack([windows[year] for year in complete], axis=1))


def _window(case: Case, cycle: SeasonCycle, history: Observations, year: int) -> Floats:
    """Inflows (stage, hydro) as if the study had started in `year`."""
    found = StagePeriods(case.horizon, cycle).of_stages
    return np.array([history.at(year + at.year - found[0].year, at.position) for at in found])


def _refuse_missing(wanted: tuple[int, ...], complete: tuple[int, ...]) -> None:
    missing = sorted(set(wanted) - set(complete))
    if missing:
        raise NoiseModelError(
            CONFIG_FILE,
            "scenario_source, historical_years",
            f"{', '.join(map(str, missing))}: history does not cover such a window; it covers those that start in "
            f"{', '.join(map(str, complete)) or 'no year'}",
        )
