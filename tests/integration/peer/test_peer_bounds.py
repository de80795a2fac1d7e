"""The same cases through cobre-python: where the models agree, so must the bounds."""

from dataclasses import replace
from pathlib import Path

import pytest
from drawn_systems import small_systems
from hypothesis import HealthCheck, given, settings
from peer import peer_bounds, peer_python
from shared_systems import SYSTEM as SYSTEM_WITHOUT_CHOICE
from small_system import write_case

import cobre

FORWARD_PASSES = 6
ITERATIONS = 30
PATIENT = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def _peer():
    peer_python()


def check_against_peer(case: Path) -> None:
    """Compare converged bounds, which do not depend on degenerate vertices."""
    ours = cobre.train(case, threads=1)
    [theirs] = peer_bounds([case])
    scale = max(10_000.0, abs(ours.lower_bound))
    assert ours.lower_bound == pytest.approx(theirs[-1][0], rel=0.0, abs=1e-6 * scale)


@PATIENT
@given(small_systems(is_plain=True))
def test_random_systems_match_peer_bounds(tmp_path_factory, system):
    check_against_peer(write_case(tmp_path_factory.mktemp("case"), system, FORWARD_PASSES, ITERATIONS))


@PATIENT
@given(small_systems(is_plain=True, is_averse=True))
def test_random_risk_averse_systems_match_peer_bounds(tmp_path_factory, system):
    check_against_peer(write_case(tmp_path_factory.mktemp("case"), system, FORWARD_PASSES, ITERATIONS))


@pytest.mark.parametrize("risk", [(0.5, 0.5), (0.25, 0.5), (0.3, 0.2), (0.3, 1.0)])
def test_risk_measure_mixes_mean_and_tail(tmp_path, risk):
    check_against_peer(write_case(tmp_path, replace(SYSTEM_WITHOUT_CHOICE, risk=risk), 2, 6))
