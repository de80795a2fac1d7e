"""Correlated noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.core.case import Correlation, CorrelationGroup
from cobre.stochastic import NoiseModelError
from cobre.stochastic.correlation import Mixing, correlation_profiles, jacobi_eigen, symmetric_root

PLACES = {("inflow", 0): 0, ("inflow", 1): 1, ("inflow", 2): 2, ("load", 0): 3}
KNOWN = {"inflow": frozenset({0, 1, 2}), "load": frozenset({0, 1})}


def group(entities, matrix):
    return CorrelationGroup("g", tuple(entities), np.array(matrix, dtype=float))


def profiles(groups, schedule=None, name="default", **others):
    correlation = Correlation({name: tuple(groups), **others}, schedule or {})
    return correlation_profiles(correlation, [0, 1], PLACES, KNOWN)


def random_correlation(seed, size):
    factors = np.random.default_rng(seed).normal(size=(size, size + 2))
    covariance = factors @ factors.T
    scale = np.sqrt(np.diag(covariance))
    matrix = covariance / np.outer(scale, scale)
    np.fill_diagonal(matrix, 1.0)
    return (matrix + matrix.T) / 2


@given(st.integers(0, 1000), st.integers(1, 12))
def test_eigenvectors_rebuild_the_matrix(seed, size):
    matrix = random_correlation(seed, size)
    values, vectors = jacobi_eigen(matrix)
    assert np.allclose(vectors * values @ vectors.T, matrix, atol=1e-13)
    assert np.allclose(vectors.T @ vectors, np.eye(size), atol=1e-13)
    assert sorted(values) == pytest.approx(np.linalg.eigvalsh(matrix), abs=1e-12)


@given(st.integers(0, 1000), st.integers(1, 12))
def test_root_is_symmetric_and_its_square_the_matrix(seed, size):
    matrix = random_correlation(seed, size)
    root = symmetric_root(matrix)[0]
    assert np.allclose(root, root.T, atol=1e-14)
    assert np.allclose(root @ root, matrix, atol=1e-13)


def test_numbers_of_the_rust_program():
    root = symmetric_root(np.array([[1, 0.5, 0.2], [0.5, 1, 0.3], [0.2, 0.3, 1]]))[0]
    expected = [
        [0.9635201, 0.25415091, 0.08388289],
        [0.25415091, 0.95646554, 0.14346072],
        [0.08388289, 0.14346072, 0.98609466],
    ]
    assert np.abs(root - expected).max() < 1e-8


def test_perfect_correlation():
    root = symmetric_root(np.array([[1.0, -1.0], [-1.0, 1.0]]))[0]
    half = np.sqrt(0.5)
    assert np.allclose(root, [[half, -half], [-half, half]])


def test_correlation_changes_only_its_group():
    noise = np.random.default_rng(1).normal(size=(5, 4))
    mixed = profiles([group([("inflow", 2), ("inflow", 0)], [[1, 0.5], [0.5, 1]])]).apply(0, noise.copy())
    big, small = 0.9659258262890683, 0.25881904510252074
    assert np.array_equal(mixed[:, [1, 3]], noise[:, [1, 3]])
    assert np.allclose(mixed[:, 0], big * noise[:, 0] + small * noise[:, 2])
    assert np.allclose(mixed[:, 2], small * noise[:, 0] + big * noise[:, 2])


def test_stages_use_their_scheduled_profile():
    pair = group([("inflow", 0), ("inflow", 1)], [[1, 0.5], [0.5, 1]])
    correlation = profiles([], {1: "wet"}, wet=(pair,))
    noise = np.random.default_rng(1).normal(size=(5, 4))
    assert np.array_equal(correlation.apply(0, noise.copy()), noise)
    assert not np.array_equal(correlation.apply(1, noise.copy()), noise)


def test_single_profile_needs_no_schedule():
    correlation = profiles([group([("inflow", 0), ("inflow", 1)], [[1, 0.5], [0.5, 1]])], name="wet")
    noise = np.ones((1, 4))
    assert correlation.apply(0, noise.copy())[0, 0] != 1.0


def test_entities_without_noise_are_ignored():
    correlation = profiles([group([("load", 0), ("load", 1)], [[1, 0.5], [0.5, 1]])])
    noise = np.random.default_rng(1).normal(size=(5, 4))
    assert np.array_equal(correlation.apply(0, noise.copy()), noise)


def test_only_the_groups_of_a_class_on_request():
    correlation = profiles([group([("inflow", 0), ("inflow", 1)], [[1, 0.5], [0.5, 1]])])
    noise = np.ones((1, 4))
    assert np.array_equal(correlation.apply(0, noise.copy(), slice(3, 4)), noise)
    assert not np.array_equal(correlation.apply(0, noise.copy(), slice(0, 3)), noise)


@pytest.mark.parametrize(
    ("entities", "matrix", "message"),
    [
        ([("inflow", 0), ("inflow", 1)], [[1, 0.5], [0.4, 1]], "not symmetric"),
        ([("inflow", 0), ("inflow", 1)], [[2, 0.5], [0.5, 1]], "between -1 and 1"),
        ([("inflow", 0), ("inflow", 1)], [[0.5, 0.5], [0.5, 1]], "diagonal"),
        ([("inflow", 0), ("inflow", 1)], [[1, float("nan")], [0.5, 1]], "between -1 and 1"),
        ([("inflow", 0), ("inflow", 1)], [[1.0]], "2 x 2"),
        ([("inflow", 0), ("inflow", 7)], [[1, 0.5], [0.5, 1]], "no inflow entity with id 7"),
        ([("inflow", 0), ("load", 0)], [[1, 0.5], [0.5, 1]], "one type"),
        ([("inflow", 0), ("inflow", 0)], [[1, 0.5], [0.5, 1]], "listed twice"),
    ],
)
def test_invalid_correlation_matrices_raise(entities, matrix, message):
    with pytest.raises(NoiseModelError, match=message) as caught:
        profiles([group(entities, matrix)])
    assert caught.value.file == "scenarios/correlation.json"


def test_error_names_unknown_profile():
    with pytest.raises(NoiseModelError, match="no profile named 'dry'"):
        profiles([], {1: "dry"})


def test_entity_in_two_groups():
    pair = [[1, 0.5], [0.5, 1]]
    groups = [group([("inflow", 0), ("inflow", 1)], pair), group([("inflow", 1), ("inflow", 2)], pair)]
    with pytest.raises(NoiseModelError, match="inflow 1 is listed twice"):
        profiles(groups)


IMPOSSIBLE = [[1, 0.9, 0.1], [0.9, 1, 0.9], [0.1, 0.9, 1]]


def test_negative_eigenvalues_become_zero():
    """Compare with the rule of the Rust program."""
    root, least = symmetric_root(np.array(IMPOSSIBLE))
    assert root[0] == pytest.approx([0.87039931, 0.53853892, -0.07828399], abs=1e-8)
    assert least == pytest.approx(-0.223774, abs=1e-6)


def test_impossible_matrices_are_noted():
    correlation = profiles([group([("inflow", 0), ("inflow", 1), ("inflow", 2)], IMPOSSIBLE)])
    [note] = correlation.notes
    assert str(note) == (
        "scenarios/correlation.json: profile default, group g: the matrix is not positive semidefinite: negative "
        "eigenvalues, down to -0.223774, count as zero, and the standard deviations of the noise grow by up to 5.7 %"
    )


def test_rounding_is_not_noted():
    assert not profiles([group([("inflow", 0), ("inflow", 1)], [[1.0, 1.0], [1.0, 1.0]])]).notes


def test_matrix_of_a_prepared_case_may_be_read_only() -> None:
    """Arrays of a case that was prepared before are pages of a file."""
    root = np.array([[1.0, 0.5], [0.5, 1.0]])
    root.flags.writeable = False
    noise = np.array([[2.0, 4.0]])
    Mixing(np.arange(2), root).apply(noise)
    np.testing.assert_array_equal(noise, [[4.0, 5.0]])
