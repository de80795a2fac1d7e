"""The inflows of a study: read from files where these give them, otherwise estimated from history.

| history | statistics | coefficients | then |
|---|---|---|---|
| no | any | any | as given |
| yes | yes | yes | as given |
| yes | no | yes | statistics and correlation from history |
| yes | yes | no | coefficients and correlation from history |
| yes | no | no | everything from history |

A correlation file has the last word on correlation.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cobre.core.case import Case, Correlation, CorrelationGroup
from cobre.core.file_names import HISTORY_FILE
from cobre.records import dataclass
from cobre.stochastic import NoiseNote
from cobre.stochastic.external import ExternalLibrary
from cobre.stochastic.par.estimation import checked_statistics, fitted_terms, notes_on_kinds, notes_on_short_history
from cobre.stochastic.par.observations import observations
from cobre.stochastic.par.residuals import residual_correlation
from cobre.stochastic.par.seasons import SeasonCycle, StagePeriods, season_cycle
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
        """The cycle of seasons; None for stages without seasons."""
        return None if self.periods is None else self.periods.cycle


def describe_inflows(case: Case, library: ExternalLibrary | None = None) -> InflowDescription:
    """Return statistics and terms of a case's inflows; plants without autoregression take an external library's."""
    tables = case.scenarios
    is_given = tables.inflow_seasonal_stats is not None and tables.inflow_ar_coefficients is not None
    description = _given(case) if tables.inflow_history is None or is_given else _estimated(case)
    return description if library is None else _with_library(description, library)


def _with_library(description: InflowDescription, library: ExternalLibrary) -> InflowDescription:
    statistics = description.statistics
    mean, std, is_given = statistics.mean_m3s.copy(), statistics.std_m3s.copy(), statistics.is_given.copy()
    library_mean, library_std = library.mean(), library.std()
    has_memory = description.terms.has_memory()
    for index, hydro_id in enumerate(library.entity_ids):
        column = statistics.hydro_ids.index(hydro_id)
        if not has_memory[column]:
            mean[:, column], std[:, column] = library_mean[:, index], library_std[:, index]
            is_given[:, column] = True
    statistics = replace(statistics, mean_m3s=mean, std_m3s=std, is_given=is_given)
    return replace(description, statistics=statistics)


def _given(case: Case) -> InflowDescription:
    terms = given_terms(case)
    periods = StagePeriods(case.horizon, season_cycle(case.horizon)) if terms.order > 0 else None
    return InflowDescription(given_statistics(case), terms, periods, None)


def _estimated(case: Case) -> InflowDescription:
    cycle = season_cycle(case.horizon)
    if len(cycle.cycles) > 1:
        return _estimated_by_cycle(case, cycle)
    history = observations(case, cycle)
    sample = checked_statistics(case, history, cycle)
    tables = case.scenarios
    statistics = estimated_statistics(case, sample, cycle)
    if tables.inflow_seasonal_stats is not None:
        # Seasons before the study that the file leaves open are estimated from history.
        statistics = replace(given_statistics(case), by_season=statistics.by_season)
    notes = [*notes_on_kinds(case, sample, cycle)]
    if tables.inflow_ar_coefficients is None:
        terms = fitted_terms(history, sample, cycle, case.config.estimation)
        notes += notes_on_short_history(case, history, sample, cycle)
    else:
        terms = given_terms(case)
    correlation = None
    if tables.correlation is None:
        correlation = residual_correlation(case, sample, terms, cycle)
    periods = StagePeriods(case.horizon, cycle)
    return InflowDescription(statistics, terms, periods, correlation, tuple(notes))


def _estimated_by_cycle(case: Case, cycle: SeasonCycle) -> InflowDescription:
    """Estimate months and quarters, for example, each at its own resolution, as if there were no other stages."""
    parts = {
        members.start: _estimated(_of_cycle(case, cycle, members)) for members in dict.fromkeys(cycle.stage_cycles)
    }
    owner = [parts[members.start] for members in cycle.stage_cycles]
    stage_ids = [stage.id for stage in case.horizon.stages]
    rows = [part.statistics.stage_ids.index(id_) for part, id_ in zip(owner, stage_ids, strict=True)]
    of_stages = list(zip(owner, rows, strict=True))
    statistics = InflowStatistics(
        tuple(stage_ids),
        owner[0].statistics.hydro_ids,
        np.array([part.statistics.mean_m3s[row] for part, row in of_stages]),
        np.array([part.statistics.std_m3s[row] for part, row in of_stages]),
        np.array([part.statistics.is_given[row] for part, row in of_stages]),
        {},
        {start + at: found for start, part in parts.items() for at, found in part.statistics.by_season.items()},
    )
    if case.scenarios.inflow_seasonal_stats is not None:
        statistics = replace(given_statistics(case), by_season=statistics.by_season)
    seasons = {start + at: row for start, part in parts.items() for at, row in part.terms.by_season.items()}
    terms = AutoregressiveTerms(
        tuple(part.terms.stages[row] for part, row in of_stages), {}, seasons, owner[0].terms.source
    )
    notes = tuple(dict.fromkeys(note for part in parts.values() for note in part.notes))
    periods = StagePeriods(case.horizon, cycle)
    return InflowDescription(statistics, terms, periods, _joined_correlation(parts), notes)


def _of_cycle(case: Case, cycle: SeasonCycle, members: range) -> Case:
    """Return the stages and seasons of one cycle."""
    definitions = case.horizon.season_definitions
    own = zip(case.horizon.stages, cycle.stage_positions, strict=True)
    horizon = replace(
        case.horizon,
        stages=tuple(stage for stage, position in own if position in members),
        season_definitions=definitions and replace(definitions, seasons=cycle.seasons[members.start : members.stop]),
    )
    return replace(case, horizon=horizon)


def _joined_correlation(parts: Mapping[int, InflowDescription]) -> Correlation | None:
    """Return profiles of all cycles under names of their own."""
    profiles: dict[str, tuple[CorrelationGroup, ...]] = {}
    schedule: dict[int, str] = {}
    for start, part in parts.items():
        if part.correlation is not None:
            profiles |= {f"cycle_{start}_{name}": found for name, found in part.correlation.profiles.items()}
            schedule |= {id_: f"cycle_{start}_{name}" for id_, name in part.correlation.schedule.items()}
    return Correlation(profiles, schedule) if profiles else None
