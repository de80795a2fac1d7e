"""The inflow model in the units of the LP: Z_t = b_t + sum_l psi_{t,l} Z_{t-l} + sigma_t eta_t.

Coefficients are given in standardised form: psi = psi* s_t / s_{t-l}. A yearly component adds a twelfth of its own
coefficient to each of the last twelve lags. The base b_t is what keeps the mean: mu_t - sum_l psi_{t,l} mu_{t-l}. A lag
whose season has no statistics takes no part.
"""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import MONTHS_PER_YEAR, Flags, Floats
from cobre.core.case import Case
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError, NoiseNote
from cobre.stochastic.par.initial_lags import KnownPast, LagSlots, LagSteps, initial_lags, lag_slots, next_lags
from cobre.stochastic.par.residuals import periodic_correlations, residual_variance
from cobre.stochastic.par.seasons import StagePeriods
from cobre.stochastic.par.statistics import InflowStatistics, SeasonStatistics
from cobre.stochastic.par.terms import AutoregressiveTerms, TermsRow

# Less than this share of unexplained variance is rounding, not noise.
_MIN_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class InflowModel:
    """Arrays by stage: `psi` (stage, lag, hydro), the others (stage, hydro)."""

    psi: Floats
    base_m3s: Floats
    sigma_m3s: Floats
    notes: tuple[NoiseNote, ...] = ()


def white_noise(statistics: InflowStatistics) -> InflowModel:
    """Return a model without autoregression: independent inflows with these means and deviations."""
    stages, hydros = statistics.mean_m3s.shape
    return InflowModel(np.zeros((stages, 0, hydros)), statistics.mean_m3s, statistics.std_m3s)


def inflow_model(statistics: InflowStatistics, terms: AutoregressiveTerms, periods: StagePeriods | None) -> InflowModel:
    """Return coefficients in m3/s, base and noise of every stage; `periods` may be missing only without memory."""
    if periods is None or terms.order == 0:
        return white_noise(statistics)
    order, cycle = terms.order, periods.cycle
    psi = np.zeros((len(terms.stages), order, len(statistics.hydro_ids)))
    base = statistics.mean_m3s.copy()
    seasons = SeasonStatistics(statistics, cycle)
    for stage, row in enumerate(terms.stages):
        position, std = cycle.stage_positions[stage], statistics.std_m3s[stage]
        of_lags = [
            seasons.of(periods.lag_stage_id(stage, lag), cycle.before(position, lag)) for lag in range(1, order + 1)
        ]
        lag_means, lag_stds = map(np.array, zip(*of_lags, strict=True))
        psi[stage] = _quotient(_coefficients(row, order) * std, lag_stds)
        psi[stage, :MONTHS_PER_YEAR] += _quotient(row.annual_coefficient * std, row.annual_std_m3s) / MONTHS_PER_YEAR
        for explained in psi[stage] * lag_means:
            base[stage] -= explained
    ratios = residual_ratios(statistics, terms, periods)
    return InflowModel(psi, base, statistics.std_m3s * ratios.values, ratios.notes)


def _coefficients(row: TermsRow, order: int) -> Floats:
    """Return a row's coefficients (lag, hydro); 0 for lags that it has none for."""
    padded = np.zeros((order, row.coefficients.shape[1]))
    padded[: len(row.coefficients)] = row.coefficients[:order]
    return padded


@dataclass(frozen=True, slots=True)
class ResidualRatios:
    """Deviation of residuals (stage, hydro) as a part of that of inflows; notes on plants that are not stationary."""

    values: Floats
    notes: tuple[NoiseNote, ...] = ()


def residual_ratios(statistics: InflowStatistics, terms: AutoregressiveTerms, periods: StagePeriods) -> ResidualRatios:
    """Return residual ratios; the earliest stage of a season represents it in the model's correlations.

    A process without a steady state cannot keep its deviation. A study ends before that matters, so its residuals are
    those of history (or of the file), with a note for the user; where neither has them the model is refused.
    """
    cycle = periods.cycle
    positions, order = cycle.stage_positions, terms.order
    seasons = SeasonStatistics(statistics, cycle)
    of_stages = [
        _standardised(seasons, periods, row, statistics.stage_ids[stage], positions[stage], order)
        for stage, row in enumerate(terms.stages)
    ]
    of_seasons = _of_seasons(seasons, terms, periods, of_stages, order)
    cycles = {members.start: members for members in cycle.stage_cycles}
    correlations = {
        start: periodic_correlations(of_seasons[cycle_.start : cycle_.stop]) for start, cycle_ in cycles.items()
    }
    by_stage = [
        (correlations[members.start], at - members.start)
        for members, at in zip(cycle.stage_cycles, positions, strict=True)
    ]
    variance = np.array(
        [residual_variance(coefficients, at, of_stages[t]) for t, (coefficients, at) in enumerate(by_stage)]
    )
    is_bounded = np.array(
        [(np.abs(coefficients[at]) <= 1.0 + _MIN_VARIANCE).all(axis=0) for coefficients, at in by_stage]
    )
    ratios_of_file = np.array([row.residual_ratio for row in terms.stages])
    # Zero up to rounding is a season that follows from those before it; only history is believed to mean that.
    min_variance = np.where(np.isnan(ratios_of_file), _MIN_VARIANCE, -_MIN_VARIANCE)
    is_broken = ~((variance > min_variance) & is_bounded)
    if not is_broken.any():
        return ResidualRatios(np.sqrt(np.maximum(variance, 0.0)))
    _refuse_explosive(statistics, terms.source, variance, is_broken & np.isnan(ratios_of_file))
    is_stationary = ~is_broken.any(axis=0)
    ratios = np.where(is_stationary | np.isnan(ratios_of_file), np.sqrt(np.maximum(variance, 0.0)), ratios_of_file)
    return ResidualRatios(ratios, tuple(_explosive(statistics, terms.source, variance, is_broken)))


def _of_seasons(
    seasons: SeasonStatistics, terms: AutoregressiveTerms, periods: StagePeriods, of_stages: list[Floats], order: int
) -> Floats:
    """Return standardised coefficients (season, lag, hydro): fitted, or those of stages; study stages count most."""
    cycle = periods.cycle
    by_position = np.zeros((cycle.length, order, seasons.hydros))
    for position, row in terms.by_season.items():
        by_position[position] = _standardised(seasons, periods, row, None, position, order)
    for stage_id in sorted(terms.before):
        position = periods.position_before_study(stage_id)
        by_position[position] = _standardised(seasons, periods, terms.before[stage_id], stage_id, position, order)
    for stage in reversed(range(len(of_stages))):
        by_position[cycle.stage_positions[stage]] = of_stages[stage]
    return by_position


def _standardised(
    seasons: SeasonStatistics, periods: StagePeriods, row: TermsRow, stage_id: int | None, position: int, order: int
) -> Floats:
    """Return coefficients (lag, hydro) with the yearly component shared out to its lags."""
    coefficients = _coefficients(row, order)
    if (row.annual_coefficient != 0.0).any():
        own_id = stage_id if periods.is_plain else None
        lag_stds = [
            seasons.of(None if own_id is None else own_id - lag, periods.cycle.before(position, lag))[1]
            for lag in range(1, min(order, MONTHS_PER_YEAR) + 1)
        ]
        yearly = _quotient(row.annual_coefficient * np.array(lag_stds), row.annual_std_m3s) / MONTHS_PER_YEAR
        coefficients[:MONTHS_PER_YEAR] += yearly
    return coefficients


def _refuse_explosive(statistics: InflowStatistics, source: str, variance: Floats, is_refused: Flags) -> None:
    for note in _explosive(statistics, source, variance, is_refused):
        remedy = "use smaller coefficients, or give residual_std_ratio with them"
        raise NoiseModelError(note.file, note.where, f"{note.text}; {remedy}")


def _explosive(statistics: InflowStatistics, source: str, variance: Floats, is_broken: Flags) -> Iterator[NoiseNote]:
    """Yield a message for each plant whose model is not stationary in some stage; the worst stage is named."""
    for hydro in np.flatnonzero(is_broken.any(axis=0)):
        stages = np.flatnonzero(is_broken[:, hydro])
        explained = 1.0 - variance[stages, hydro]
        if np.isnan(explained).any():
            at, amount = 0, "more and more"
        else:
            at = int(explained.argmax())
            amount = f"{explained[at]:.6g}"
        yield NoiseNote(
            "inflows-not-stationary",
            source,
            f"hydro_id {statistics.hydro_ids[hydro]}, stage_id {statistics.stage_ids[stages[at]]}",
            f"the coefficients do not give a stationary process: past inflows explain {amount} of the variance",
        )


def _quotient(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; zero where the divisor is zero."""
    usable = denominator > 0.0
    return np.where(usable, numerator / np.where(usable, denominator, 1.0), 0.0)


# Past inflows in the state: coefficients of lag slots, how slots change, and their initial content.


@dataclass(frozen=True, slots=True)
class InflowMemory:
    """`psi` (stage, slot, hydro), `first` (slot, hydro). `steps` None: slots are lags, which move on by one lag."""

    psi: Floats
    steps: LagSteps | None
    first: Floats
    notes: tuple[NoiseNote, ...] = ()

    def after(self, stage: int, slots: Floats, inflow: Floats) -> Floats:
        """Return the content of slots (slot, draw, hydro) after a stage with some inflows (draw, hydro)."""
        return next_lags(self.steps, stage, slots, inflow)


def inflow_memory(
    case: Case, psi: Floats, periods: StagePeriods | None, end_reads: Floats | None = None, *, may_miss: bool = False
) -> InflowMemory:
    """Return the memory of a model with coefficients `psi` (stage, lag, hydro).

    end_reads (lag, hydro): not zero where the lags at the end of the study are read, by the cuts of another study.
    may_miss: lags that were not observed are 0, with a note.
    """
    depth = 0 if end_reads is None else len(end_reads)
    stages, order, hydros = psi.shape
    own = np.zeros((stages, max(order, depth), hydros))
    own[:, :order] = psi
    if periods is None or periods.is_plain or (not own.any() and not depth):
        reading = np.concatenate([own, np.zeros((1, *own.shape[1:]))])
        if end_reads is not None:
            # The end is one more stage; what the study itself reads is known to be there.
            reading[:] = 0.0
            reading[stages, :depth] = end_reads
        lags = initial_lags(case, reading, None if periods is None else periods.cycle, may_miss=may_miss)
        return InflowMemory(own, None, lags.values, lags.notes)
    first_day = min(periods.earlier(occurrence, own.shape[1]).days[0] for occurrence in periods.of_stages)
    past = KnownPast(case, first_day, may_miss=may_miss)
    slots = lag_slots(periods, own, lambda occurrence: past.days_of(occurrence.days), depth)
    first = _first(past, slots, end_reads)
    return InflowMemory(slots.psi, slots.steps, first, tuple(past.notes))


def _first(past: KnownPast, slots: LagSlots, end_reads: Floats | None) -> Floats:
    """Return the content of slots before the first stage; slots that no stage reads may be unknown."""
    is_read = _is_read(slots, end_reads)
    values = np.zeros((len(slots.first), slots.psi.shape[2]))
    for slot, held in enumerate(slots.first):
        if held is not None and held[1] > 0.0:
            values[slot] = held[1] * past.means(held[0].days, slot + 1, is_read[slot])
    return values


def _is_read(slots: LagSlots, end_reads: Floats | None) -> Flags:
    """Return whether some stage, or the end, depends on what a slot (slot, hydro) holds at first."""
    stages, width, hydros = slots.psi.shape
    is_read = np.zeros((width, hydros), bool)
    if end_reads is not None:
        is_read[: len(end_reads)] = end_reads != 0.0
    for stage in reversed(range(stages)):
        earlier = slots.psi[stage] != 0.0
        for slot, source in enumerate(slots.steps.taken_from[stage].tolist()):
            if source >= 0:
                earlier[source] |= is_read[slot]
        is_read = earlier
    return is_read
