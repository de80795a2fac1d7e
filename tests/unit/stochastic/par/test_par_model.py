"""Periodic autoregressive models in the units of the LP."""

import numpy as np
import pytest
from noise_cases import coefficients, inflow_stats, make_case, month, observed, stages, table

from cobre.core.case import InflowObservation
from cobre.stochastic import NoiseModelError
from cobre.stochastic.model import build_noise_model
from cobre.stochastic.par.residuals import periodic_correlations, residual_variance


def par_case(count, stats, terms, recent=(200.0,), **others):
    return make_case(
        horizon_stages=stages(count, with_seasons=True),
        with_seasons=True,
        recent=observed(recent),
        inflow_seasonal_stats=inflow_stats(stats),
        inflow_ar_coefficients=coefficients(terms),
        **others,
    )


def trajectory(model, noise=0.0):
    """Return inflows of one scenario with the same noise at every stage."""
    lags, results = model.initial_lags[None], []
    for stage in range(model.num_stages):
        vector = np.full((1, model.layout.dimension), noise)
        inflow = model.realise(stage, vector).inflow_m3s + model.lag_inflow(stage, lags)
        results.append(float(inflow[0, 0]))
        lags = np.concatenate([inflow[:, None], lags[:, :-1]], axis=1)
    return results


def test_inflows_of_a_published_case_fall_towards_their_mean():
    stats = [(0, t, 100.0, 1e-10) for t in (-1, 0, 1, 2)]
    model = build_noise_model(par_case(3, stats, [(0, t, 1, 0.5) for t in range(3)]))
    assert model.max_order == 1
    assert trajectory(model) == pytest.approx([150.0, 125.0, 112.5], abs=1e-9)


def test_constant_model_over_a_whole_year():
    terms = np.zeros((12, 2, 1))
    terms[:, 0], terms[:, 1] = 0.5, 0.3
    correlations = periodic_correlations(terms)
    assert correlations[:, 1, 0] == pytest.approx(np.full(12, 0.5 / 0.7))
    assert [residual_variance(correlations, m, terms[m])[0] for m in range(12)] == pytest.approx([0.4457142857] * 12)


def test_residuals_of_a_whole_year():
    stats = [(0, t, 100.0, 10.0) for t in range(12)]
    terms = [(0, t, lag, phi) for t in range(12) for lag, phi in ((1, 0.5), (2, 0.3))]
    model = build_noise_model(par_case(12, stats, terms, recent=(100.0, 100.0)))
    assert model.inflow_sigma[:, 0] == pytest.approx(np.full(12, 10.0 * np.sqrt(0.445714285714)), rel=1e-9)


def test_residuals_of_part_of_a_year():
    """Seasons without a model count as white noise; their lags take no part in the inflow."""
    stats = [(0, t, 100.0, 10.0) for t in range(4)]
    terms = [(0, t, lag, phi) for t in range(4) for lag, phi in ((1, 0.5), (2, 0.3))]
    model = build_noise_model(par_case(4, stats, terms, recent=()))
    assert (model.inflow_sigma[:, 0] / 10.0) ** 2 == pytest.approx([0.66, 0.51, 0.465, 0.4515])
    assert model.ar_coefficients[:, :, 0].tolist() == [[0.0, 0.0], [0.5, 0.0], [0.5, 0.3], [0.5, 0.3]]
    assert model.initial_lags.tolist() == [[0.0], [0.0]]


def test_models_of_stages_before_the_study_are_used():
    stats = [(0, t, 100.0, 10.0) for t in range(-2, 3)]
    terms = [(0, t, lag, phi) for t in range(-2, 3) for lag, phi in ((1, 0.5), (2, 0.3))]
    model = build_noise_model(par_case(3, stats, terms, recent=(100.0, 100.0)))
    assert model.inflow_sigma[:, 0] == pytest.approx([6.819090848492928, 6.719374970932936, 6.68917035214], rel=1e-10)


def test_coefficients_are_scaled_by_deviations_and_the_base_keeps_the_mean():
    stats = [(0, -1, 90.0, 40.0), (0, 0, 100.0, 10.0), (0, 1, 110.0, 20.0), (0, 2, 120.0, 30.0)]
    model = build_noise_model(par_case(3, stats, [(0, t, 1, 0.5) for t in range(3)]))
    assert model.ar_coefficients[:, 0, 0].tolist() == [0.125, 1.0, 0.75]
    assert model.inflow_base[:, 0].tolist() == [88.75, 10.0, 37.5]
    assert model.inflow_sigma[:, 0] == pytest.approx([8.660254037844386, 17.32050807568877, 25.98076211353316])


def test_lags_before_the_study_borrow_from_the_same_season():
    stats = [(0, t, 100.0 + t, 10.0 + t) for t in range(12)]
    model = build_noise_model(par_case(12, stats, [(0, t, 1, 0.5) for t in range(12)]))
    assert model.ar_coefficients[0, 0, 0] == 0.5 * 10.0 / 21.0
    assert model.inflow_base[0, 0] == 100.0 - 0.5 * 10.0 / 21.0 * 111.0


def test_later_stage_of_the_season_has_its_own_statistics():
    stats = [(0, t, 100.0 + t, 10.0 + t) for t in range(13)]
    model = build_noise_model(par_case(13, stats, [(0, t, 1, 0.5) for t in range(13)]))
    assert model.ar_coefficients[12, 0, 0] == 0.5 * 22.0 / 21.0


def test_yearly_component():
    stats = [(0, t, 100.0 + 5 * t, 10.0 + 2 * (t % 12)) for t in range(14)]
    yearly = table(
        "hydro_id stage_id annual_coefficient annual_mean_m3s annual_std_m3s",
        [(0, t, 0.2, 150.0, 12.0) for t in range(14)],
    )
    terms = [(0, t, 1, 0.3) for t in range(14)]
    model = build_noise_model(par_case(14, stats, terms, tuple(range(107, 119)), inflow_annual_component=yearly))
    assert model.max_order == 12
    share = 0.2 * 10.0 / 12.0 / 12.0
    assert model.ar_coefficients[12, 1:, 0] == pytest.approx(np.full(11, share))
    assert model.ar_coefficients[12, 0, 0] == pytest.approx(share + 0.3 * 10.0 / 32.0)
    means = [100.0 + 5 * t for t in range(12)][::-1]
    assert model.inflow_base[12, 0] == pytest.approx(160.0 - np.dot(model.ar_coefficients[12, :, 0], means))


def test_model_with_its_yearly_component_keeps_its_deviation():
    """Check that long simulated series have the standard deviation of the statistics."""
    stats = [(0, t, 0.0, 10.0) for t in range(12)]
    yearly = table(
        "hydro_id stage_id annual_coefficient annual_mean_m3s annual_std_m3s",
        [(0, t, 0.3, 0.0, 6.0) for t in range(12)],
    )
    case = par_case(12, stats, [(0, t, 1, 0.4) for t in range(12)], (0.0,) * 12, inflow_annual_component=yearly)
    model = build_noise_model(case)
    rng, lags, squares = np.random.default_rng(5), np.zeros((4000, 12, 1)), []
    for step in range(12 * 20):
        stage = step % 12
        inflow = model.inflow_sigma[stage] * rng.normal(size=(4000, 1)) + model.lag_inflow(stage, lags)
        lags = np.concatenate([inflow[:, None], lags[:, :-1]], axis=1)
        squares.append(float((inflow**2).mean()))
    assert np.sqrt(np.mean(squares[-24:])) == pytest.approx(10.0, rel=0.02)


def test_plants_without_statistics_have_no_inflow():
    model = build_noise_model(make_case(hydros=2, inflow_seasonal_stats=inflow_stats([(1, 0, 40.0, 10.0)])))
    assert model.inflow_base.tolist() == [[0.0, 40.0], [0.0, 0.0]]
    assert model.inflow_sigma.tolist() == [[0.0, 10.0], [0.0, 0.0]]


@pytest.mark.parametrize("phi", [(1.1,), (1.0,), (0.9, 0.4)])
def test_explosive_coefficients_raise(phi):
    stats = [(0, t, 100.0, 10.0) for t in range(12)]
    terms = [(0, t, lag, value) for t in range(12) for lag, value in enumerate(phi, start=1)]
    with pytest.raises(NoiseModelError, match=r"hydro_id 0, stage_id 0.*not give a stationary process"):
        build_noise_model(par_case(12, stats, terms, recent=(100.0, 100.0)))


@pytest.mark.parametrize("phi", [(1.1,), (0.9, 0.4)])
def test_residual_ratio_of_explosive_coefficients_is_taken_from_the_file(phi):
    """One plant's process has no steady state; the other's is as it was."""
    stats = [(h, t, 100.0, 10.0) for h in range(2) for t in range(12)]
    rows = [(0, t, lag, value, 0.4) for t in range(12) for lag, value in enumerate(phi, start=1)]
    rows += [(1, t, 1, 0.5, 0.1) for t in range(12)]
    case = make_case(
        hydros=2,
        horizon_stages=stages(12, with_seasons=True),
        with_seasons=True,
        recent=observed((100.0, 100.0), hydros=2),
        inflow_seasonal_stats=inflow_stats(stats),
        inflow_ar_coefficients=table("hydro_id stage_id lag coefficient residual_std_ratio", rows),
    )
    model = build_noise_model(case)
    assert model.inflow_sigma[:, 0].tolist() == [4.0] * 12
    assert model.inflow_sigma[:, 1] == pytest.approx([10.0 * np.sqrt(0.75)] * 12)
    assert [note.where for note in model.notes] == ["hydro_id 0, stage_id 0"]


def test_memory_without_seasons_raises():
    case = make_case(
        horizon_stages=stages(2),
        inflow_seasonal_stats=inflow_stats([(0, t, 100.0, 10.0) for t in range(2)]),
        inflow_ar_coefficients=coefficients([(0, 0, 1, 0.5)]),
    )
    with pytest.raises(NoiseModelError, match=r"stages\.json: season_definitions: missing"):
        build_noise_model(case)


def test_season_without_stage_is_ignored():
    two = stages(3, with_seasons=True)
    case = make_case(
        horizon_stages=(two[0], two[2]),
        with_seasons=True,
        inflow_seasonal_stats=inflow_stats([(0, t, 100.0, 10.0) for t in (0, 2)]),
        inflow_ar_coefficients=coefficients([(0, 2, 1, 0.5)]),
    )
    assert not build_noise_model(case).ar_coefficients.any()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 0, 1, 0.5), (0, 0, 1, 0.4)], "lag 1: two rows"),
        ([(0, 0, 0, 0.5)], "lags count from 1"),
        ([(7, 0, 1, 0.5)], "hydro_id 7"),
        ([(0, 0, 1, float("nan"))], "finite coefficient"),
    ],
)
def test_broken_coefficients(rows, message):
    with pytest.raises(NoiseModelError, match=message):
        build_noise_model(par_case(2, [(0, t, 100.0, 10.0) for t in (-1, 0, 1)], rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 0, 1.0, 1.0), (0, 0, 2.0, 1.0)], "hydro_id 0, stage_id 0: two rows"),
        ([(7, 0, 1.0, 1.0)], "no such hydro_id"),
        ([(0, 0, float("inf"), 1.0)], "finite numbers"),
    ],
)
def test_broken_statistics(rows, message):
    with pytest.raises(NoiseModelError, match=message):
        build_noise_model(make_case(inflow_seasonal_stats=inflow_stats(rows)))


STATS = [(0, t, 100.0, 10.0) for t in (-1, 0, 1, 2)]
FIRST_LAG = [(0, t, 1, 0.5) for t in range(3)]


def december(*parts):
    return tuple(InflowObservation(0, month(2023, 12).replace(day=a), b, value) for a, b, value in parts)


def case_with(recent, **tables):
    return make_case(
        horizon_stages=stages(3, with_seasons=True),
        with_seasons=True,
        recent=recent,
        inflow_seasonal_stats=inflow_stats(STATS),
        inflow_ar_coefficients=coefficients(FIRST_LAG),
        **tables,
    )


def test_first_lag_is_the_mean_over_its_days():
    middle, end = month(2023, 12).replace(day=16), month(2024, 1)
    model = build_noise_model(case_with(december((1, middle, 100.0), (16, end, 200.0))))
    assert model.initial_lags[0, 0] == pytest.approx((15 * 100 + 16 * 200) / 31)


def test_recent_observations_overrule_history():
    end = month(2024, 1)
    past = table("hydro_id start_date end_date value_m3s", [(0, month(2023, 11), end, 80.0)])
    model = build_noise_model(case_with(december((16, end, 200.0)), inflow_history=past))
    assert model.initial_lags[0, 0] == pytest.approx((15 * 80 + 16 * 200) / 31)


@pytest.mark.parametrize("recent", [(), december((16, month(2024, 1), 200.0))])
def test_uncovered_lag_raises(recent):
    with pytest.raises(NoiseModelError, match=r"hydro_id 0 \(H0\): lag 1 .* 2023-12-01 to 2024-01-01"):
        build_noise_model(case_with(recent))


def test_overlapping_windows_of_history_raise():
    past = table(
        "hydro_id start_date end_date value_m3s",
        [(0, month(2023, 11), month(2024, 1), 80.0), (0, month(2023, 12), month(2024, 1), 90.0)],
    )
    with pytest.raises(NoiseModelError, match="overlaps the one that starts on 2023-11-01"):
        build_noise_model(case_with((), inflow_history=past))
