"""The example cases published with cobre-rs, read in place, and their known costs."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from published_data import PUBLISHED_CASES

import cobre

pytestmark = pytest.mark.skipif(
    not PUBLISHED_CASES.is_dir(),
    reason="the published cases are not here: they belong into ../shared/cases, or where COBRE_PUBLISHED_CASES says",
)


@dataclass(frozen=True)
class Expected:
    """The final lower bound in $, and its tolerance."""

    name: str
    cost: float
    tolerance: float


DETERMINISTIC = (
    Expected("d01-thermal-dispatch", 182_500.0, 1e-6),
    Expected("d02-single-hydro", 23_635_000 / 9, 1e-4),
    Expected("d03-two-hydro-cascade", 4_171_000 / 3, 1e-4),
    Expected("d04-transmission", 5_263_443_883 / 657, 1e-4),
    Expected("d06-fpha-variable-head", 732_952_154 / 225, 1e-4),
    Expected("d08-evaporation", 2_628_380.531_119_177, 1e-4),
    Expected("d14-block-factors", 176_900.0, 1e-4),
    Expected("d16-par1-lag-shift", 7_756_250.0, 1.0),
    Expected("d20-operational-violations", 195_744_444.444_444_4, 1e-2),
    Expected("d25-discount-rate", 2_611_454.584_787_282, 1e-4),
)


@pytest.mark.parametrize("expected", DETERMINISTIC, ids=lambda expected: expected.name)
def test_deterministic_case_has_the_published_cost(expected):
    result = cobre.train(PUBLISHED_CASES / expected.name, threads=1)
    assert result.lower_bound == pytest.approx(expected.cost, abs=expected.tolerance, rel=0.0)


@pytest.mark.parametrize("expected", DETERMINISTIC, ids=lambda expected: expected.name)
def test_deterministic_case_closes_the_gap(expected):
    """With one scenario the sampled path is the only path."""
    result = cobre.train(PUBLISHED_CASES / expected.name, threads=1)
    assert abs(result.gap) <= 1e-6


def test_d25_simulation_costs_the_same():
    trained = cobre.train(PUBLISHED_CASES / "d25-discount-rate", threads=1)
    simulated = cobre.simulate(PUBLISHED_CASES / "d25-discount-rate", trained.policy, scenarios=3, threads=1)
    assert simulated.mean_cost == pytest.approx(2_611_454.584_787_282, abs=1e-4, rel=0.0)


def test_every_published_case_is_tested():
    folders = {path.name for path in PUBLISHED_CASES.iterdir() if path.is_dir()}
    assert folders == {expected.name for expected in DETERMINISTIC} | {"1dtoy", "4ree"}


@pytest.fixture(scope="module")
def toy():
    return cobre.train(PUBLISHED_CASES / "1dtoy", threads=2)


def test_1dtoy_lower_bounds_match_published(toy):
    found = [record.lower_bound for record in toy.history[:3]]
    assert found[0] == pytest.approx(1_036_235.144379, abs=5e-7, rel=0.0)
    assert found[1:] == [pytest.approx(1.38612e6, abs=5.0, rel=0.0), pytest.approx(1.39921e6, abs=5.0, rel=0.0)]


def test_1dtoy_upper_bounds_match_published(toy):
    found = [record.upper_bound for record in toy.history[:3]]
    assert found[0] == pytest.approx(2_747_183.279348, abs=5e-7, rel=0.0)
    assert found[1:] == [pytest.approx(5.89958e5, abs=0.5, rel=0.0), pytest.approx(2.23298e6, abs=5.0, rel=0.0)]


def test_1dtoy_runs_its_iteration_limit(toy):
    assert toy.iterations == 128
    assert "iteration limit of 128" in toy.stop_reason


@pytest.fixture(scope="module")
def four_regions():
    return cobre.train(PUBLISHED_CASES / "4ree", threads=2)


@pytest.mark.timeout(900)
def test_4ree_first_lower_bound_matches_published(four_regions):
    assert four_regions.history[0].lower_bound == pytest.approx(60_252_226_351.2903, rel=1e-12)


@pytest.mark.timeout(900)
def test_4ree_final_lower_bound_matches_published(four_regions):
    """Degenerate vertices leave a choice of cuts: intermediate bounds differ, the final one does not."""
    assert four_regions.iterations == 256
    assert four_regions.lower_bound == pytest.approx(6.08663e10, rel=1e-4)


@pytest.mark.timeout(900)
def test_4ree_lower_bound_never_falls(four_regions):
    bounds = [record.lower_bound for record in four_regions.history]
    assert all(after >= before * (1.0 - 1e-9) for before, after in pairwise(bounds))
