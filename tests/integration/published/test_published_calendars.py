"""Published cases whose stages are not all months, read in place, and their known costs."""

from itertools import product
from pathlib import Path

import pytest
from published_data import DECKS

import cobre
from cobre.io.case import load_case
from cobre.stochastic.model import build_noise_model

pytestmark = pytest.mark.skipif(
    not DECKS.is_dir(),
    reason="the published decks are not here: they belong into ../shared/decks, or where COBRE_DECKS says",
)


def test_d28_weeks_then_a_month_with_ragged_external_scenarios():
    case = DECKS / "d28-decomp-weekly-monthly"
    trained = cobre.train(case, threads=1)
    simulated = cobre.simulate(case, trained.policy, threads=1)
    assert trained.lower_bound == pytest.approx(684.865_283_295_068_7, abs=1e-6, rel=0.0)
    assert simulated.mean_cost == pytest.approx(630.622_222_2, abs=1e-6, rel=0.0)


# d29 and d30: cobre-python's bounds, 151.471 195 878 302 04 and 6 622.702 704 406 686, are not the costs of its own
# simulations. Its cuts take the inflow of each stage for lag 1, while its paths and its documents say that lag 1 is
# the mean of the season before. Both published numbers follow only from that error, as shown here; the right ones, by
# enumeration, are ours.
PROBABILITY = 1.0 / 5.0
SIGMA = 20.0 * 0.75**0.5


def noise_of(case: Path) -> list[list[float]]:
    return [opening[:, 0].tolist() for opening in build_noise_model(load_case(case)).openings]


def test_d29_weeks_of_one_month_share_its_lag():
    case = DECKS / "d29-weekly-par-noise-sharing"
    costs = []
    for path in product(*noise_of(case)):
        volume, cost = 100.0, 0.0
        for innovation in path:
            inflow = 50.0 + 0.5 * 200.0 + SIGMA * innovation  # lag 1 is December in all four weeks
            filled = volume + (inflow - 50.0) * 168.0 * 0.0036
            spilled = max(0.0, filled - 200.0)
            volume, cost = filled - spilled, cost + spilled / 0.0036 * 0.01
        costs.append(cost)
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(sum(costs) / len(costs), rel=1e-9)


def test_d29_published_bound_follows_from_cuts_on_each_inflow():
    """SDDP as it runs there: paths keep December as lag 1, cuts of a stage are evaluated at its own inflow instead."""
    case = DECKS / "d29-weekly-par-noise-sharing"
    noise, paths = noise_of(case), build_noise_model(load_case(case)).training_sampler
    cuts: list[list[tuple[float, float, float]]] = [[] for _ in range(5)]  # value, slope in volume, slope in lag
    bounds = []
    for iteration in range(1, 21):
        volumes = [100.0]
        for stage in range(3):
            eta = float(paths.sample(iteration, [0], stage)[0, 0])
            volumes.append(_week(cuts[stage], volumes[-1], 200.0, eta)[1])
        for stage in (3, 2, 1):
            found = [_week(cuts[stage], volumes[stage], 200.0, eta) for eta in noise[stage]]
            cost, slope, lag_slope = (PROBABILITY * sum(one[k] for one in found) for k in (0, 2, 3))
            cuts[stage - 1].append((cost - slope * volumes[stage] - lag_slope * 200.0, slope, lag_slope))
        bounds.append(PROBABILITY * sum(_week(cuts[0], 100.0, 200.0, eta)[0] for eta in noise[0]))
    assert bounds[-1] == pytest.approx(151.471_195_878_302_04, abs=1e-6)


def _week(cuts, volume, lag, eta):
    """Return a week's cost, its end volume, and slopes in volume and lag; cuts get the inflow in place of lag 1."""
    inflow = 50.0 + 0.5 * lag + SIGMA * eta
    right = [(0.0, 0.0, 0.0), *((cut[0] + cut[2] * inflow, cut[1], cut[2]) for cut in cuts)]
    filled = volume + (inflow - 50.0) * 168.0 * 0.0036
    # The volume at the end is between 0 and 200; the water above it is spilled at 0.01 / 0.0036 $ per hm3.
    price, most = 0.01 / 0.0036, min(200.0, filled)
    kinks = {(a[0] - b[0]) / (b[1] - a[1]) for a in right for b in right if a[1] != b[1]}
    ends = [end for end in (0.0, most, *kinks) if 0.0 <= end <= most]
    cost = {end: price * (filled - end) + max(c + s * end for c, s, _ in right) for end in ends}
    end = max(end for end in ends if cost[end] <= min(cost.values()) + 1e-6)  # spilling now or later may cost the same
    active = max(right, key=lambda cut: cut[0] + cut[1] * end)
    slope = price if end < filled else active[1]
    return cost[end], end, slope, 0.5 * (slope * 168.0 * 0.0036 + active[2])


def _mean_cost_d30(noise, lag_of_the_third_quarter) -> float:
    """Return the mean cost: reservoirs are full and water is never short, so it is linear in the mean inflows."""
    hours = (744, 696, 744, 720, 744, 720, 2208, 2208, 2160, 2184)
    lag, inflows = 200.0, []
    for stage, openings in enumerate(noise):
        lag = lag_of_the_third_quarter(inflows) if stage == 6 else lag
        inflows.append(50.0 + 0.5 * lag + SIGMA * sum(openings) / 5.0)
        lag = inflows[-1]
    left = sum((inflow - 50.0) * h for inflow, h in zip(inflows, hours, strict=True)) - 100.0 / 0.0036
    return 0.01 * left


def test_d30_the_third_quarter_remembers_the_second():
    case = DECKS / "d30-multi-resolution-monthly-quarterly"
    right = _mean_cost_d30(noise_of(case), lambda z: (720 * z[3] + 744 * z[4] + 720 * z[5]) / 2184)
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(right, rel=1e-9)


def test_d30_published_bound_has_june_for_the_second_quarter():
    published = _mean_cost_d30(noise_of(DECKS / "d30-multi-resolution-monthly-quarterly"), lambda z: z[5])
    assert published == pytest.approx(6_622.702_704_406_686, abs=1e-6)
