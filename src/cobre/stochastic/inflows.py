"""The inflows of a study: given in files, or estimated from history, as far as the files leave it open.

| history | statistics | coefficients | then |
|---|---|---|---|
| no | any | any | as given |
| yes | yes | yes | as given |
| yes | no | yes | statistics and correlation from history |
| yes | yes | no | coefficients and correlation from history |
| yes | no | no | everything from history |

A correlation file has the last word on correlation.
"""

from dataclasses import dataclass, replace

from cobre.core.case import Case, Correlation
from cobre.stochastic.external import ExternalLibrary
from cobre.stochastic.notes import NoiseNote
from cobre.stochastic.par.fitted import checked_statistics, fitted_terms, notes_on_kinds
from cobre.stochastic.par.history import HISTORY_FILE
from cobre.stochastic.par.observations import observations
from cobre.stochastic.par.residual_correlation import residual_correlation
from cobre.stochastic.par.seasons import SeasonCycle, season_cycle
from cobre.stochastic.par.stage_periods import StagePeriods
from cobre.stochastic.par.statistics import InflowStatistics, estimated_statistics, given_statistics
from cobre.stochastic.par.terms import AutoregressiveTerms, given_terms


@dataclass(frozen=True, slots=True)
class InflowDescription:
    """Statistics and terms before they become a model. `correlation` None: not estimated; `periods`: not needed.

    `notes`: observations that a user should look at.
    """

    statistics: InflowStatistics
    terms: AutoregressiveTerms
    periods: StagePeriods | None
    correlation: Correlation | None
    notes: tuple[NoiseNote, ...] = ()

    @property
    def has_fitted_terms(self) -> bool:
        """Whether coefficients come from history."""
        return self.terms.source == HISTORY_FILE

    @property
    def cycle(self) -> SeasonCycle | None:
        """The seasons of the year."""
        return None if self.periods is None else self.periods.cycle


def describe_inflows(case: Case, library: ExternalLibrary | None = None) -> InflowDescription:
    """What is known of the inflows of a case; an external library speaks for the plants without memory."""
    tables = case.scenarios
    is_given = tables.inflow_seasonal_stats is not None and tables.inflow_ar_coefficients is not None
    found = _given(case) if tables.inflow_history is None or is_given else _estimated(case)
    return found if library is None else _with_library(found, library)


def _with_library(found: InflowDescription, library: ExternalLibrary) -> InflowDescription:
    statistics = found.statistics
    mean, std, is_given = statistics.mean_m3s.copy(), statistics.std_m3s.copy(), statistics.is_given.copy()
    library_mean, library_std = library.mean(), library.std()
    has_memory = found.terms.has_memory()
    for index, hydro_id in enumerate(library.entity_ids):
        column = statistics.hydro_ids.index(hydro_id)
        if not has_memory[column]:
            mean[:, column], std[:, column] = library_mean[:, index], library_std[:, index]
            is_given[:, column] = True
    statistics = replace(statistics, mean_m3s=mean, std_m3s=std, is_given=is_given)
    return replace(found, statistics=statistics)


def _given(case: Case) -> InflowDescription:
    terms = given_terms(case)
    periods = StagePeriods(case.horizon, season_cycle(case.horizon)) if terms.order > 0 else None
    return InflowDescription(given_statistics(case), terms, periods, None)


def _estimated(case: Case) -> InflowDescription:
    cycle = season_cycle(case.horizon)
    history = observations(case, cycle)
    sample = checked_statistics(case, history, cycle)
    tables = case.scenarios
    statistics = estimated_statistics(case, sample, cycle)
    if tables.inflow_seasonal_stats is not None:
        # What the file leaves open (seasons before the study) history knows.
        statistics = replace(given_statistics(case), by_season=statistics.by_season)
    if tables.inflow_ar_coefficients is None:
        terms = fitted_terms(history, sample, cycle, case.config.estimation)
    else:
        terms = given_terms(case)
    correlation = None
    if tables.correlation is None:
        correlation = residual_correlation(case, sample, terms, cycle)
    periods = StagePeriods(case.horizon, cycle)
    return InflowDescription(statistics, terms, periods, correlation, tuple(notes_on_kinds(case, sample, cycle)))
