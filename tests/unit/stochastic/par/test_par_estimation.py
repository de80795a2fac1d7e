"""Models fitted to history."""

import numpy as np
import pytest
from noise_cases import (
    coefficients,
    history,
    inflow_stats,
    make_case,
    month,
    monthly_history,
    observed,
    stages,
    with_estimation,
)

from cobre.stochastic import NoiseModelError
from cobre.stochastic.inflows import describe_inflows
from cobre.stochastic.model import build_noise_model
from cobre.stochastic.par.estimation import PeriodicSample, fit_hydros
from cobre.stochastic.par.observations import Observations
from cobre.stochastic.par.statistics import sample_statistics

SPATIAL = np.array([[1.0, 0.6], [0.6, 1.0]])


def simulated(years, phi, seed=1, hydros=2):
    """Return monthly inflows (year, month, hydro) of a PAR model: `phi[month]` are standardised coefficients."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(SPATIAL[:hydros, :hydros])
    count = 12 * (years + 10)
    standard = np.zeros((count, hydros))
    for t in range(12, count):
        for lag, value in enumerate(phi[t % 12], start=1):
            standard[t] += value * standard[t - lag]
        standard[t] += factor @ rng.normal(size=hydros) * 0.7
    months = np.arange(12)
    mean, std = 100.0 + 40.0 * np.sin(months / 6 * np.pi), 15.0 + 5.0 * np.cos(months / 6 * np.pi)
    kept = standard[120:].reshape(years, 12, hydros)
    return mean[None, :, None] + std[None, :, None] * kept + 10.0 * np.arange(hydros)


def estimated_case(values, count=12, first_year=1900, **tables):
    start = (first_year + len(values), 1)
    return make_case(
        hydros=values.shape[2],
        horizon_stages=stages(count, start, with_seasons=True),
        with_seasons=True,
        inflow_history=monthly_history(values, first_year),
        **tables,
    )


def test_known_coefficients_are_found():
    """Check that the fit to a thousand years recovers the process that made them, within sampling error."""
    phi = [(0.6,) if m % 2 else (0.5, 0.25) for m in range(12)]
    values = simulated(1000, phi)
    terms = describe_inflows(estimated_case(values)).terms
    for month_, row in enumerate(terms.stages):
        for hydro in range(2):
            truth = np.zeros(row.coefficients.shape[0])
            truth[: len(phi[month_])] = phi[month_]
            scale = _standard_units(values, month_, hydro, len(truth))
            assert np.abs(row.coefficients[:, hydro] - truth * scale).max() < 0.12, (month_, hydro)
            assert np.abs(row.coefficients[:2, hydro] - (truth * scale)[:2]).max() < 0.09


def _standard_units(values, month_, hydro, order):
    """Convert coefficients from deviations of the process to those of the sample, which the fit uses."""
    nominal = 15.0 + 5.0 * np.cos(np.arange(12) / 6 * np.pi)
    actual = values.std(axis=0)[:, hydro]
    lags = [(month_ - lag) % 12 for lag in range(1, order + 1)]
    return np.array([nominal[month_] / nominal[m] * actual[m] / actual[month_] for m in lags])


def test_simulated_noise_is_reproduced():
    """Check that residual deviation and spatial correlation of the fitted model are those that made the series."""
    values = simulated(1000, [(0.5,)] * 12)
    case = estimated_case(values)
    model = build_noise_model(case)
    nominal = 0.7 * (15.0 + 5.0 * np.cos(np.arange(12) / 6 * np.pi))
    assert model.inflow_sigma[:, 0] == pytest.approx(nominal, rel=0.06)
    estimated = describe_inflows(case).correlation
    assert estimated is not None
    matrices = [estimated.profiles[name][0].matrix for name in estimated.schedule.values()]
    assert [matrix[0, 1] for matrix in matrices] == pytest.approx([0.6] * 12, abs=0.08)


def test_statistics_are_population_statistics_of_each_season():
    values = simulated(30, [(0.5,)] * 12)
    statistics = describe_inflows(estimated_case(values)).statistics
    assert statistics.mean_m3s == pytest.approx(values.mean(axis=0))
    assert statistics.std_m3s == pytest.approx(values.std(axis=0))


def test_white_noise_stays_white():
    values = simulated(60, [()] * 12, seed=3)
    terms = describe_inflows(with_estimation(estimated_case(values), max_order=1)).terms
    fitted = np.array([row.coefficients for row in terms.stages])
    assert np.count_nonzero(fitted) <= 4  # about one of twenty is significant by chance


def test_coefficients_solve_the_periodic_yule_walker_equations():
    values = simulated(40, [(0.4, 0.3)] * 12, seed=2, hydros=1)
    terms = describe_inflows(estimated_case(values)).terms
    standard = ((values - values.mean(axis=0)) / values.std(axis=0)).reshape(-1)
    for month_, row in enumerate(terms.stages):
        phi = row.coefficients[:, 0]
        order = int(np.max(np.flatnonzero(phi), initial=-1)) + 1
        matrix = [
            [_sample_correlation(standard, month_ - 1 - min(i, j), abs(i - j)) for j in range(order)]
            for i in range(order)
        ]
        right = [_sample_correlation(standard, month_, i + 1) for i in range(order)]
        if order:
            assert phi[:order] == pytest.approx(np.linalg.solve(matrix, right), abs=1e-12)


def _sample_correlation(standard, season, lag):
    if lag == 0:
        return 1.0
    at = [t for t in range(len(standard)) if t % 12 == season % 12 and t >= lag]
    return float(np.mean([standard[t] * standard[t - lag] for t in at]))


def test_no_contribution_is_negative():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = simulated(40, [tuple(rng.uniform(-0.2, 0.5, 3)) for _ in range(12)], seed=seed, hydros=1)
        sample = _sample(values, 6)
        phi = fit_hydros(sample, 6).coefficients[:, :, 0]
        for season in range(12):
            assert min(_contributions(phi, sample.std[:, 0], season), default=0.0) >= 0.0
            assert phi[season, 0] >= 0.0


def _sample(values, max_order):
    statistics = sample_statistics(Observations(1900, values))
    correlation = [[statistics.correlation(season, lag) for lag in range(max_order + 1)] for season in range(12)]
    return PeriodicSample(np.array(correlation), statistics.std, statistics.count)


def _contributions(phi, std, season):
    """Return the inflow of a season due to one unit 1, 2, ... seasons before, followed forwards in time."""
    order = int(np.max(np.flatnonzero(phi[season]), initial=-1)) + 1
    seasons, lags = phi.shape
    rows = []
    for back in range(1, order + 1):
        inflow = {season - back: 1.0}
        for at in range(season - back + 1, season + 1):
            inflow[at] = sum(
                phi[at % seasons, lag - 1] * std[at % seasons] / std[(at - lag) % seasons] * inflow.get(at - lag, 0.0)
                for lag in range(1, lags + 1)
            )
        rows.append(inflow[season])
    return rows


def test_duplicate_lag_reduces_order_to_one():
    """Both lags carry the same information: equations of order 2 have no unique solution; order 1 is significant."""
    correlation = np.ones((2, 3, 1))
    correlation[:, 1:] = [[[1.0], [0.5]], [[1.0], [0.5]]]
    fits = fit_hydros(PeriodicSample(correlation, np.ones((2, 1)), np.full((2, 1), 100)), 2)
    assert fits.coefficients[:, :, 0].tolist() == [[1.0], [1.0]]


def test_wrong_shapes_raise():
    with pytest.raises(ValueError, match="seasons x \\(max_order"):
        fit_hydros(PeriodicSample(np.ones((2, 3, 1)), np.ones((2, 1)), np.ones((2, 1))), 3)
    with pytest.raises(ValueError, match="tables of seasons x hydros"):
        fit_hydros(PeriodicSample(np.ones((2, 3, 1)), np.ones((3, 1)), np.ones((2, 1))), 2)


def test_large_coefficients_become_white_noise():
    values = simulated(60, [(0.8,)] * 12, hydros=1)
    assert fit_hydros(_sample(values, 1), 1, max_magnitude=0.1).coefficients.size == 0


def test_constant_history_has_no_noise():
    values = np.full((10, 12, 1), 50.0)
    model = build_noise_model(estimated_case(values))
    assert model.max_order == 0
    assert (model.inflow_sigma == 0.0).all()
    assert model.inflow_base[:, 0] == pytest.approx(np.full(12, 50.0))


def test_yearly_component_is_found():
    """Check that a slow wave over the years shows in the last year's mean."""
    rng = np.random.default_rng(4)
    level, noise = np.zeros(200), rng.normal(size=(200, 12, 1))
    for year in range(1, 200):
        level[year] = 0.9 * level[year - 1] + rng.normal()
    values = 100.0 + 5.0 * level[:, None, None] + 5.0 * noise
    case = with_estimation(estimated_case(values), order_selection="pacf_annual", max_order=2)
    terms = describe_inflows(case).terms
    assert terms.order == 12
    assert np.mean([row.annual_coefficient[0] for row in terms.stages]) > 0.3
    flat = values.reshape(-1)
    means = np.array([flat[12 * y - 12 + 3 : 12 * y + 3].mean() for y in range(1, 200)])
    assert terms.stages[3].annual_std_m3s[0] == pytest.approx(means.std())


def test_seasons_without_lags_due_to_short_history_are_reported():
    values = simulated(2, [(0.5,)] * 12)
    plain = describe_inflows(with_estimation(estimated_case(values), order_selection="pacf"))
    assert not any("white noise" in note.text for note in plain.notes)
    yearly = describe_inflows(with_estimation(estimated_case(values), order_selection="pacf_annual"))
    notes = [note for note in yearly.notes if "white noise" in note.text]
    assert [note.where for note in notes] == ["hydro_id 0 (H0)", "hydro_id 1 (H1)"]
    # Season 3 of the first plant counts as constant, which another note says.
    assert notes[0].text.startswith("seasons 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11: the mean of the year before")
    assert "longer history" in notes[0].text
    assert all(not row.annual_coefficient.any() and not row.coefficients.any() for row in yearly.terms.stages)


def test_history_with_given_statistics_fits_coefficients_only():
    values = simulated(40, [(0.5,)] * 12)
    given = inflow_stats([(h, t, 200.0, 20.0) for h in range(2) for t in range(12)])
    whole, part = (
        describe_inflows(estimated_case(values)),
        describe_inflows(estimated_case(values, inflow_seasonal_stats=given)),
    )
    assert (part.statistics.mean_m3s == 200.0).all()
    assert all(
        np.array_equal(a.coefficients, b.coefficients)
        for a, b in zip(whole.terms.stages, part.terms.stages, strict=True)
    )


def test_history_with_given_coefficients_fits_statistics_only():
    values = simulated(40, [(0.5,)] * 12)
    given = coefficients([(h, t, 1, 0.3) for h in range(2) for t in range(12)])
    description = describe_inflows(estimated_case(values, inflow_ar_coefficients=given))
    assert (description.terms.stages[0].coefficients == 0.3).all()
    assert description.statistics.mean_m3s == pytest.approx(values.mean(axis=0))
    assert description.correlation is not None


def test_history_with_complete_model_gives_lags_only():
    values = simulated(3, [(0.5,)] * 12)
    case = estimated_case(
        values,
        inflow_seasonal_stats=inflow_stats([(h, t, 100.0, 10.0) for h in range(2) for t in range(12)]),
        inflow_ar_coefficients=coefficients([(h, t, 1, 0.3) for h in range(2) for t in range(12)]),
    )
    assert describe_inflows(case).correlation is None
    assert build_noise_model(case).initial_lags[0] == pytest.approx(values[-1, -1])


def test_study_of_part_of_year_has_model_of_whole_year():
    values = simulated(40, [(0.5,)] * 12)
    whole, part = build_noise_model(estimated_case(values)), build_noise_model(estimated_case(values, count=3))
    order = part.max_order
    assert np.allclose(part.ar_coefficients[:3, :order], whole.ar_coefficients[:3, :order], rtol=1e-12)
    assert part.inflow_sigma == pytest.approx(whole.inflow_sigma[:3], rel=1e-12)


def test_days_of_window_are_assigned_to_seasons():
    """A window of two months says the same of both; a season with a gap is not counted."""
    rows = []
    for year in range(2000, 2004):
        rows += [(0, month(year, m), month(year, m + 2), 10.0 * m + year - 2000) for m in range(1, 13, 2)]
    rows[0] = (0, month(2000, 1).replace(day=2), month(2000, 3), 10.0)
    case = make_case(
        horizon_stages=stages(2, (2004, 1), with_seasons=True),
        with_seasons=True,
        inflow_history=history(rows),
        inflow_ar_coefficients=coefficients([]),
    )
    statistics = describe_inflows(case).statistics
    assert statistics.mean_m3s[:, 0] == pytest.approx([np.mean([11, 12, 13]), np.mean([10, 11, 12, 13])])


def test_too_little_history_raises():
    values = simulated(1, [()] * 12)
    with pytest.raises(NoiseModelError, match=r"inflow_history\.parquet: hydro_id 0 \(H0\): season 0 is covered in 1"):
        build_noise_model(estimated_case(values))


def test_history_without_seasons_raises():
    case = make_case(horizon_stages=stages(2), inflow_history=history([(0, month(2000, 1), month(2000, 2), 1.0)]))
    with pytest.raises(NoiseModelError, match="season_definitions: missing"):
        build_noise_model(case)


def test_windows_ending_before_start_raise():
    case = make_case(
        horizon_stages=stages(2, with_seasons=True),
        with_seasons=True,
        recent=observed((1.0,)),
        inflow_history=history([(0, month(2000, 2), month(2000, 1), 1.0)]),
    )
    with pytest.raises(NoiseModelError, match="end_date after its start_date"):
        build_noise_model(case)


YEARS = np.arange(40)
HALF_TEN = np.where(YEARS < 21, 10.4, 20.0 + YEARS)  # 21 of 40 are 10 when rounded


@pytest.mark.parametrize(
    ("values", "mean", "std"),
    [
        (50.3 + np.where(YEARS % 2, 0.9e-6, 0.0), 50.3, 0.0),
        (50.3 + np.where(YEARS % 2, 1.1e-6, 0.0), 50.0, 0.0),
        (HALF_TEN, 10.0, 0.0),
        (np.where(YEARS < 20, 10.4, 20.0 + YEARS), None, None),
        (np.where(YEARS < 21, 10.5, 20.0 + YEARS), 11.0, 0.0),
        (np.where(YEARS < 4, -30.0 - YEARS, 15.2), 15.0, 0.0),
        (np.where(YEARS < 5, -30.0 - YEARS, 15.2), None, None),
    ],
    ids=["constant", "one number", "saturated", "half", "half up", "a tenth negative", "many negative"],
)
def test_observations_by_kind(values, mean, std):
    """Expected values are those of cobre-python 0.18; None: the statistics of the sample."""
    grid = simulated(40, [()] * 12, hydros=1)
    grid[:, 3, 0] = values
    statistics = sample_statistics(Observations(1900, grid))
    assert statistics.mean[3, 0] == pytest.approx(values.mean() if mean is None else mean, rel=1e-12)
    assert statistics.std[3, 0] == pytest.approx(values.std() if std is None else std, rel=1e-12)


def test_constant_season_is_never_a_lag():
    grid = simulated(40, [(0.6, 0.2)] * 12)
    grid[:, 3, 0] = HALF_TEN
    description = describe_inflows(estimated_case(grid))
    coefficients_ = np.array([row.coefficients[:, 0] for row in description.terms.stages])
    assert not coefficients_[3].any()
    for lag in range(1, coefficients_.shape[1] + 1):
        assert coefficients_[(3 + lag) % 12, lag - 1] == 0.0
    assert description.correlation.profiles["season_03"][0].matrix.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert [note.where for note in description.notes] == ["hydro_id 0 (H0)"]
    assert "season 3: more than half" in description.notes[0].text


def test_negative_observations_are_noted():
    grid = simulated(40, [()] * 12)
    grid[:6, 5, 1] = -3.0 - np.arange(6)
    [note] = describe_inflows(estimated_case(grid)).notes
    assert note.where == "hydro_id 1 (H1)"
    assert note.text == "season 5: more than a tenth of the observations are negative"


def test_order_limits_decrease_in_all_failing_seasons_together():
    """Two seasons, worked by hand: what fails first is judged again after each step of the other."""
    table_ = {(0, 1): 0.5, (0, 2): 0.1, (1, 1): 0.6, (1, 2): -0.4}
    correlation = [[[table_.get((season, lag), 1.0)] for lag in range(3)] for season in range(2)]
    sample = PeriodicSample(np.array(correlation), np.ones((2, 1)), np.full((2, 1), 1000))
    first = [_order_two(table_, season) for season in (0, 1)]
    assert first[0][0] * first[1][0] + first[0][1] < 0.0 or first[1][0] * first[0][0] + first[1][1] < 0.0
    assert np.count_nonzero(fit_hydros(sample, 2).coefficients[:, :, 0], axis=1).tolist() == [2, 1]


def _order_two(correlations, season):
    matrix = [[1.0, correlations[1 - season, 1]], [correlations[1 - season, 1], 1.0]]
    return np.linalg.solve(matrix, [correlations[season, 1], correlations[season, 2]])


def pooled(values, coefficients_):
    """Return the correlation of all residuals of two hydros, over all seasons."""
    standard = ((values - values.mean(axis=0)) / values.std(axis=0)).reshape(-1, 2)
    left = np.full_like(standard, np.nan)
    for t in range(12, len(standard)):
        terms = coefficients_[t % 12]
        left[t] = standard[t] - sum(terms[lag] * standard[t - lag - 1] for lag in range(len(terms)))
    for t in range(12):
        order = [int(np.max(np.flatnonzero(coefficients_[t][:, h]), initial=-1)) + 1 for h in range(2)]
        if max(order) <= t:
            left[t] = standard[t] - sum(coefficients_[t][lag] * standard[t - lag - 1] for lag in range(max(order)))
    return np.corrcoef(left[~np.isnan(left).any(axis=1)].T)[0, 1]


def test_few_years_share_one_correlation():
    values = simulated(20, [(0.5,)] * 12)
    description = describe_inflows(estimated_case(values))
    assert set(description.correlation.schedule.values()) == {"default"}
    matrix = description.correlation.profiles["default"][0].matrix
    assert matrix[0, 1] == pytest.approx(
        pooled(values, [row.coefficients for row in description.terms.stages]), abs=1e-12
    )


def test_thirty_pairs_give_separate_matrix():
    """The first January has no lag, so its season has a pair less than there are years."""
    values = simulated(30, [(0.8,)] * 12)
    description = describe_inflows(estimated_case(values))
    assert description.terms.stages[0].coefficients[0].any()
    assert description.correlation.schedule[0] == "default"
    assert description.correlation.schedule[8] == "season_08"


def explosive_case():
    """Return a few years with an outlier: sample correlations that no process has."""
    rng = np.random.default_rng(7)
    level = np.cumsum(rng.normal(size=(9, 12, 1)).reshape(-1)).reshape(9, 12, 1)
    values = 100.0 + 5.0 * level
    values[4, 6, 0] *= 8.0
    return estimated_case(values)


def test_non_stationary_estimates_are_noted_and_use_historical_residuals():
    case = explosive_case()
    model = build_noise_model(case)
    [note] = [note for note in model.notes if "stationary" in note.text]
    assert note.where.startswith("hydro_id 0, stage_id")
    assert "past inflows explain 1." in note.text
    description = describe_inflows(case)
    ratios = np.array([row.residual_ratio[0] for row in description.terms.stages])
    assert (ratios <= 1.0 + 1e-12).all()
    assert model.inflow_sigma[:, 0] == pytest.approx(ratios * description.statistics.std_m3s[:, 0])


def test_unobserved_lags_are_noted_once_for_all_plants():
    values = simulated(40, [(0.6,)] * 12)
    case = make_case(
        hydros=2,
        horizon_stages=stages(12, (1942, 1), with_seasons=True),
        with_seasons=True,
        inflow_history=monthly_history(values, 1900),
    )
    model = build_noise_model(case)
    notes = [note for note in model.notes if "taken as 0" in note.text]
    assert notes
    assert any("hydro_id 0 (H0), 1 (H1)" in note.where or "lag 1" in note.text for note in notes)
    assert not model.initial_lags.any()
