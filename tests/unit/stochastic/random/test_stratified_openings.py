"""Stratified openings: Latin hypercubes, Sobol and Halton points."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.stochastic import NoiseModelError
from cobre.stochastic.random.pcg64 import norm_quantile
from cobre.stochastic.random.point_sets import first_primes, gray_rank, halton, latin_hypercube, sobol

# Openings of the Rust program: seed 42, stage 0, 8 openings of 3 entities; the first three.
LATIN_HYPERCUBE = [
    [0.669433374031587, 0.3373774690448456, -1.4340397764854234],
    [1.4595863776330908, -0.09625202103285568, 0.1414581166359357],
    [-0.8627784081598241, 1.005935254603179, 1.3744114575384425],
]
SOBOL = [
    [-1.086614282532243, 0.41642019030961397, 0.1312993764019891],
    [0.3547289123161057, -0.9885212276581001, -1.6235985469589296],
    [1.2191357068523487, -0.22381990255052833, 0.8496162336495553],
]


def probabilities(values):
    return np.vectorize(NormalDist().cdf)(values)


@given(st.floats(1e-12, 1.0 - 1e-12))
def test_quantiles_are_close_to_exact(probability):
    assert norm_quantile(np.array([probability]))[0] == pytest.approx(NormalDist().inv_cdf(probability), abs=2e-8)


def test_quantiles_are_cut_off_at_the_ends():
    assert norm_quantile(np.array([0.0, 1.0, 0.5])).tolist() == [-8.21, 8.21, 0.0]


def test_golden_latin_hypercube():
    assert latin_hypercube(42, 0, 8, 3)[:3].tolist() == LATIN_HYPERCUBE
    assert latin_hypercube(42, 1, 8, 3)[0].tolist() == [0.5586559859728215, -0.7014776716463891, 0.0698821761502875]


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_latin_hypercube_hits_every_interval_once(count):
    cells = np.floor(probabilities(latin_hypercube(3, 5, count, 4)) * count).astype(int)
    for column in cells.T:
        assert sorted(column.tolist()) == list(range(count))


def test_golden_sobol_points():
    assert sobol(42, 0, 8, 3)[:3].tolist() == SOBOL
    assert sobol(42, 1, 8, 3)[1].tolist() == [1.4266736988048354, 0.28544028479393824, 0.49204600482721583]


@pytest.mark.parametrize("dimension", [1, 2, 3, 481])
def test_sobol_points_hit_every_binary_interval_once(dimension):
    cells = np.floor(probabilities(sobol(5, 2, 64, dimension)) * 64).astype(int)
    for column in cells.T:
        assert sorted(column.tolist()) == list(range(64))


def test_sobol_raises_beyond_its_dimensions():
    with pytest.raises(NoiseModelError, match="481 random entities"):
        sobol(42, 0, 2, 482)


def test_gray_rank_undoes_the_gray_code():
    numbers = np.arange(1000)
    rank = gray_rank(numbers)
    assert np.array_equal(rank ^ (rank >> 1), numbers)


@pytest.mark.parametrize(("base_index", "base"), list(enumerate([2, 3, 5, 7])))
def test_halton_points_hit_every_interval_of_their_base_once(base_index, base):
    count = base**2
    cells = np.floor(probabilities(halton(8, 1, count, 4))[:, base_index] * count + 1e-6).astype(int)
    assert sorted(cells.tolist()) == list(range(count))


def test_halton_points_stay_away_from_the_corner():
    drawn = halton(42, 0, 64, 5)
    assert np.abs(drawn).max() < 5.0
    assert np.abs(drawn.mean(axis=0)).max() < 0.1


def test_primes():
    assert first_primes(8) == [2, 3, 5, 7, 11, 13, 17, 19]


@pytest.mark.parametrize("design", [latin_hypercube, sobol, halton])
def test_stages_and_seeds_have_different_points(design):
    assert not np.array_equal(design(42, 0, 8, 2), design(42, 1, 8, 2))
    assert not np.array_equal(design(42, 0, 8, 2), design(43, 0, 8, 2))
    assert np.array_equal(design(42, 0, 8, 2), design(42, 0, 8, 2))
