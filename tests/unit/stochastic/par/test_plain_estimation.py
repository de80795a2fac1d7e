"""Inflow models of a system of plants, compared with plain loops (`plain_estimation`).

A deck in small: plants that share their weather, with memories of many kinds, rivers that run dry or overflow.
"""

import numpy as np
import pytest
from noise_cases import make_case, monthly_history, stages, with_estimation
from plain_estimation import MONTHS, PlainFit

from cobre.stochastic.inflows import describe_inflows

YEARS, PLANTS, FIRST_YEAR = 50, 12, 1950
YEAR = np.arange(YEARS)


def history():
    """Return inflows (year, month, plant) in m3/s: memories of one to four months, a slow wave, and odd seasons."""
    random = np.random.default_rng(20240117)
    memory = random.uniform(-0.25, 0.55, (4, MONTHS, PLANTS)) / np.array([1.0, 1.5, 2.0, 2.5])[:, None, None]
    weather = np.linalg.cholesky(0.5 * np.eye(PLANTS) + 0.5)
    count = MONTHS * (YEARS + 20)
    standard, wave = np.zeros((count, PLANTS)), np.zeros(PLANTS)
    for t in range(4, count):
        wave = 0.98 * wave + 0.1 * random.normal(size=PLANTS)
        past = sum(memory[lag, t % MONTHS] * standard[t - lag - 1] for lag in range(4))
        standard[t] = past + 0.8 * weather @ random.normal(size=PLANTS) + wave
    month = np.arange(MONTHS)[:, None]
    mean = 120.0 + 60.0 * np.sin(month / 6 * np.pi + np.arange(PLANTS))
    std = 25.0 + 8.0 * np.cos(month / 6 * np.pi)
    values = mean + std * standard[-MONTHS * YEARS :].reshape(YEARS, MONTHS, PLANTS)
    return np.round(with_odd_seasons(values), 1)


def with_odd_seasons(values):
    values[:, 2, 0] = 33.3  # one number
    values[:, 7, 1] = np.where(YEAR < 26, 8.4, values[:, 7, 1])  # dry in more than half of the years
    values[:, 8, 1] = np.where(YEAR < 25, 8.4, values[:, 8, 1])  # and in half of them
    values[:, 5, 2] = np.where(YEAR < 6, -4.0 - YEAR, 15.2)  # negative in more than a tenth
    values[:, 5, 3] = np.where(YEAR < 5, -4.0 - YEAR, 15.2)  # in a tenth: the rest is one number
    return values


VALUES = history()


def estimate(values=VALUES, **estimation):
    start = (FIRST_YEAR + YEARS, 1)
    case = make_case(
        hydros=PLANTS,
        horizon_stages=stages(MONTHS, start, with_seasons=True),
        with_seasons=True,
        inflow_history=monthly_history(values, FIRST_YEAR),
    )
    return describe_inflows(with_estimation(case, **estimation))


@pytest.mark.parametrize("max_order", [1, 3, 6, 12])
def test_coefficients_equal_plain_loops(max_order):
    terms = estimate(max_order=max_order).terms
    orders = set()
    for plant in range(PLANTS):
        fits = PlainFit(VALUES[:, :, plant], max_order).fits
        orders |= {len(lags) for lags, _ in fits}
        for season, (lags, _) in enumerate(fits):
            own = terms.stages[season].coefficients[:, plant]
            assert own == pytest.approx(np.pad(lags, (0, len(own) - len(lags))), abs=1e-11), (plant, season)
    assert orders >= set(range(min(max_order, 4) + 1))  # or the history would show too little


@pytest.mark.parametrize("missing", [0, 1, 5])
@pytest.mark.parametrize("max_order", [1, 3, 6])
def test_coefficients_with_yearly_component_equal_plain_loops(max_order, missing):
    """Check also a last year whose last months are not observed yet."""
    values = VALUES.copy()
    values[-1, MONTHS - missing :] = np.nan
    terms = estimate(values, max_order=max_order, order_selection="pacf_annual").terms
    for plant in range(PLANTS):
        plain = PlainFit(values[:, :, plant], max_order, with_year=True)
        for season, (lags, yearly) in enumerate(plain.fits):
            row = terms.stages[season]
            own = row.coefficients[:, plant]
            assert own == pytest.approx(np.pad(lags, (0, len(own) - len(lags))), abs=1e-11), (plant, season)
            assert row.annual_coefficient[plant] == pytest.approx(yearly, abs=1e-11), (plant, season)
            assert row.annual_mean_m3s[plant] == pytest.approx(plain.year_mean[season], rel=1e-12)
            assert row.annual_std_m3s[plant] == pytest.approx(plain.year_std[season], rel=1e-12)


def test_season_without_lags_keeps_yearly_component():
    """Inflows without memory: lags are significant by chance, and go when contributions are negative."""
    values = 100.0 + 20.0 * np.random.default_rng(5).normal(size=(YEARS, MONTHS, PLANTS))
    terms = estimate(values, max_order=6, order_selection="pacf_annual").terms
    alone = 0
    for plant in range(PLANTS):
        plain = PlainFit(values[:, :, plant], 6, with_year=True)
        for season, (lags, yearly) in enumerate(plain.fits):
            assert terms.stages[season].annual_coefficient[plant] == pytest.approx(yearly, abs=1e-11), (plant, season)
            alone += not lags and abs(yearly - plain.year_correlation(season, 0)) < 1e-12
    assert alone > 0


def test_every_mean_and_deviation():
    statistics = estimate().statistics
    for plant in range(PLANTS):
        plain = PlainFit(VALUES[:, :, plant], 1)
        assert statistics.mean_m3s[:, plant] == pytest.approx(plain.mean, rel=1e-12)
        assert statistics.std_m3s[:, plant] == pytest.approx(plain.std, rel=1e-12)


def test_kinds_of_observations_at_their_limits():
    """The history has one of each kind, and its neighbour on the other side of the limit."""
    statistics = estimate().statistics
    assert (statistics.std_m3s[[2, 7, 5], [0, 1, 3]] == 0.0).all()
    assert (statistics.std_m3s[[8, 5], [1, 2]] > 0.0).all()
