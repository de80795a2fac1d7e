"""A study whose inflow model has an estimated yearly component, with unobserved lags, and all its paths.

Plants without reservoirs turbine what comes, so that a path costs what its inflows say and the bound is the mean over
all paths of the tree.
"""

from itertools import product

import numpy as np
import pytest
from crafted_case import CraftedCase, Period, months, write_crafted
from plain_estimation import MONTHS, PlainFit

import cobre
from cobre.io.case import load_case
from cobre.stochastic.model import build_noise_model

YEARS, PLANTS, STAGES, OPENINGS = 40, 2, 4, 3
LAST_TWO = ((410.0, 520.0), (395.0, 505.0))  # m3/s by plant: November and December before the study
LOAD_MW = 420.0
SUPPLY = ((40.0, 40.0), (110.0, 60.0), (300.0, 60.0), (5000.0, np.inf))


def history() -> np.ndarray:
    """Return inflows (year, month, plant) that end three years before the study; wet and dry years alternate."""
    random = np.random.default_rng(77)
    level, values = np.zeros(PLANTS), np.zeros((YEARS, MONTHS, PLANTS))
    for year in range(YEARS):
        level = 0.7 * level + random.normal(size=PLANTS)
        values[year] = 130.0 + 9.0 * level + 12.0 * random.normal(size=(MONTHS, PLANTS))
    return np.round(values, 1)


def case(values: np.ndarray) -> CraftedCase:
    """Return a case of four months of 2024 after a history of 1981 to 2020."""
    day = [f"{1981 + month // MONTHS}-{month % MONTHS + 1:02}-01" for month in range(MONTHS * YEARS + 1)]
    flat = values.reshape(-1, PLANTS)
    recent = ("2023-11-01", "2023-12-01", "2024-01-01")
    return CraftedCase(
        periods=[Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", m - 1, OPENINGS) for m in range(1, STAGES + 1)],
        seasons=months(),
        history=[(p, day[t], day[t + 1], float(flat[t, p])) for t in range(len(flat)) for p in range(PLANTS)],
        observed=[(p, recent[at], recent[at + 1], LAST_TWO[p][at]) for p in range(PLANTS) for at in range(2)],
        plants=PLANTS,
        load_mw=LOAD_MW,
        first_hm3=0.0,
        max_hm3=0.0,
        rules=({"type": "iteration_limit", "limit": 40},),
        selection={"method": "sampled", "forward_passes": 3},
        config={"estimation": {"order_selection": "pacf_annual", "max_order": 2}},
    )


def inflow(fit: PlainFit, stage: int, past: list[float]) -> float:
    """Return the expected inflow of a plant, m3/s; `past` ends with the last month, and unobserved months are 0.

    A year of mean inflows does not change the mean, so the last year is compared with the mean of all months.
    """
    lags, yearly = fit.fits[stage]
    year = (sum(past[-MONTHS:]) - sum(fit.mean)) / MONTHS / fit.year_std[stage]
    known = [(past[-lag] - fit.mean[stage - lag]) / fit.std[stage - lag] for lag in range(1, len(lags) + 1)]
    return fit.mean[stage] + fit.std[stage] * (np.dot(lags, known) + yearly * year)


def cost(hours: float, inflows: list[float]) -> float:
    """Return the cost of a stage, $: the water of the first plant also passes the second."""
    passing = np.cumsum(inflows)
    assert passing.min() > 0.0
    missing = LOAD_MW - 0.8 * np.minimum(120.0, passing).sum()
    spent = 0.01 * np.maximum(0.0, passing - 120.0).sum()
    for price, most in SUPPLY:
        used = min(most, max(0.0, missing))
        missing, spent = missing - used, spent + price * used
    return float(hours * spent)


def test_bound_equals_mean_over_all_paths(tmp_path):
    values = history()
    study = case(values)
    model = build_noise_model(load_case(write_crafted(tmp_path, study)))
    fits = [PlainFit(values[:, :, plant], 2, with_year=True) for plant in range(PLANTS)]
    assert all(yearly for fit in fits for _, yearly in fit.fits[:STAGES])
    costs = []
    for path in product(range(OPENINGS), repeat=STAGES):
        past, total = [[0.0] * (MONTHS - 2) + list(LAST_TWO[plant]) for plant in range(PLANTS)], 0.0
        for stage, opening in enumerate(path):
            noise = model.inflow_sigma[stage] * model.openings[stage][opening]
            now = [inflow(fits[plant], stage, past[plant]) + noise[plant] for plant in range(PLANTS)]
            past = [[*before, value] for before, value in zip(past, now, strict=True)]
            total += cost(study.periods[stage].all_hours, now)
        costs.append(total)
    result = cobre.train(tmp_path, threads=1)
    assert result.lower_bound == pytest.approx(np.mean(costs), rel=1e-6)
    [warning] = [text for text in result.warnings if "taken as 0" in text]
    assert "hydro_id 0 (H0), 1 (H1)" in warning
    assert "lag 3, 4, 5, 6, 7, 8, 9, 10, 11, 12" in warning
