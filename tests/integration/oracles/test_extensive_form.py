"""Converged bounds compared with the optimum of the whole scenario tree, solved as one LP by HiGHS."""

import tempfile
from pathlib import Path

import pytest
from drawn_systems import small_systems
from extensive_form import optimum
from hypothesis import HealthCheck, given, settings
from random_systems import check
from small_system import write_case

import cobre

FORWARD_PASSES = 6
ITERATIONS = 30
TOLERANCE = 1e-6
# Writing and training a case takes longer than hypothesis expects of an example.
PATIENT = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def train(system):
    with tempfile.TemporaryDirectory() as folder:
        return cobre.train(write_case(Path(folder), system, FORWARD_PASSES, ITERATIONS), threads=1)


def distance(bound, best):
    """Return the relative distance; tiny costs count as ten thousand $."""
    return (bound - best) / max(10_000.0, abs(best))


@pytest.mark.parametrize("seed", range(1001, 1013))
def test_random_systems_reach_their_optimum(seed):
    """Check a few of the systems that `make oracle` tries."""
    names, problem = check(seed)
    assert not problem, names


@PATIENT
@given(small_systems())
def test_lower_bound_reaches_the_optimum_from_below(system):
    history, best = train(system).history, optimum(system)
    assert max(distance(record.lower_bound, best) for record in history) <= TOLERANCE
    assert distance(history[-1].lower_bound, best) >= -TOLERANCE


@PATIENT
@given(small_systems(is_averse=True))
def test_risk_averse_lower_bound_reaches_the_nested_optimum(system):
    history, best = train(system).history, optimum(system)
    assert max(distance(record.lower_bound, best) for record in history) <= TOLERANCE
    assert distance(history[-1].lower_bound, best) >= -TOLERANCE
