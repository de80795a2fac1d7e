"""Inflow lags in calendars other than months: means of seasons, assembled from the stages that share days with them."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from calendar_cases import CASES, TO_JANUARY, case
from crafted_case import CraftedCase, Period, months, write_crafted
from crafted_forms import Remembered

import cobre
from cobre.io.case import load_case
from cobre.stochastic.model import build_noise_model


def season_days(case: CraftedCase, season_of) -> list[date]:
    """Return a day of each stage's season: its first, except for weeks that end in the next month."""
    starts = [date.fromisoformat(period.start) for period in case.periods]
    return [date(2024, 1, 6) if start == date(2023, 12, 30) else start for start in starts]


@pytest.mark.parametrize("name", CASES)
def test_lags_are_means_of_seasons(tmp_path, name):
    """Compare the model with a day-by-day computation of the same noise."""
    case, season_of = CASES[name]
    noise = build_noise_model(load_case(write_crafted(tmp_path, case)))
    expected = Remembered(case, season_of, season_days(case, season_of))
    random = np.random.default_rng(5)
    before = {1: (80.0, 20.0), 2: (80.0, 20.0)}
    slots, inflows = noise.initial_lags, []
    for stage in range(len(case.periods)):
        eta = random.normal()
        base = noise.inflow_base[stage, 0] + noise.inflow_sigma[stage, 0] * eta
        inflow = base + float(noise.ar_coefficients[stage, :, 0] @ slots[:, 0])
        assert inflow == pytest.approx(
            expected.inflow(stage, noise.inflow_sigma[stage, 0] * eta, inflows, before), rel=1e-12
        )
        inflows.append(inflow)
        slots = next_slots(noise, stage, slots, inflow)


def next_slots(noise, stage, slots, inflow):
    taken, share = noise.lag_changes(stage)
    if not len(taken):
        return np.concatenate([np.full((1, 1), inflow), slots[:-1]])
    return slots[taken] * (taken >= 0)[:, None] + share[:, None] * inflow


@pytest.mark.parametrize("name", CASES)
def test_bound_equals_cost_of_policy(tmp_path, name):
    """Check that the converged bound is the mean over all scenarios: cuts know all that inflows depend on."""
    case, _ = CASES[name]
    periods = [replace(period, openings=2) for period in case.periods[:7]]
    small = replace(
        case,
        periods=periods,
        load_mw=150.0,
        rules=({"type": "iteration_limit", "limit": 60},),
        inflow={key: value for key, value in case.inflow.items() if key[1] < len(periods)},
        memory={key: value for key, value in case.memory.items() if key[1] < len(periods)},
        selection={"method": "sampled", "forward_passes": 4},
    )
    trained = cobre.train(write_crafted(tmp_path, small), threads=1)
    simulated = cobre.simulate(tmp_path, trained.policy, scenarios=400, threads=1)
    error = 4.0 * simulated.std_cost / 20.0 + 1e-6 * trained.lower_bound
    assert simulated.mean_cost == pytest.approx(trained.lower_bound, abs=error)


def test_custom_seasons_equal_to_months_give_same_bits(tmp_path):
    periods = [Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", m - 1) for m in range(1, 7)]
    folders = [tmp_path / kind for kind in ("monthly", "custom")]
    bounds = [
        cobre.train(write_crafted(folder, case(periods, months(folder.name), 2, TO_JANUARY)), threads=1).lower_bound
        for folder in folders
    ]
    assert bounds[0] == bounds[1]
