"""Cuts from solves: sums in one order, bit for bit, and their slots in the pool."""

import numpy as np
import pytest

from cobre._native import average_cuts, write_cuts
from cobre.sddp.cut_pool import MAX_CHUNK_CUTS


@pytest.mark.parametrize("dimension", [0, 1, 5])
def test_sums_go_over_components_and_openings_in_their_order(dimension: int) -> None:
    random = np.random.default_rng(1)
    points, openings = 3, 7
    costs, weights = random.normal(size=(points, openings)), random.uniform(size=(points, openings))
    slopes, states = random.normal(size=(points * openings, dimension)), random.normal(size=(points, dimension))
    cuts = average_cuts(costs, weights, slopes, states)
    assert cuts.shape == (points, 1 + dimension)
    for point in range(points):
        expected = np.zeros(1 + dimension)
        for opening in range(openings):
            slope = slopes[point * openings + opening]
            constant = costs[point, opening] - sum((slope * states[point]).tolist())
            expected += weights[point, opening] * np.concatenate([[constant], slope])
        assert cuts[point].tolist() == expected.tolist()


def test_without_points_there_are_no_cuts() -> None:
    assert average_cuts(np.zeros((0, 4)), np.zeros((0, 4)), np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 3)


def test_mismatched_shapes_raise() -> None:
    with pytest.raises(ValueError, match="differ"):
        average_cuts(np.zeros((2, 4)), np.zeros((2, 3)), np.zeros((8, 2)), np.zeros((2, 2)))
    with pytest.raises(TypeError, match="weights"):
        average_cuts(np.zeros((2, 4)), np.zeros((4, 2)).T, np.zeros((8, 2)), np.zeros((2, 2)))


def test_cuts_go_on_in_the_next_chunk() -> None:
    chunks = [np.full((3, MAX_CHUNK_CUTS), np.nan) for _ in range(2)]
    table = np.arange(12.0).reshape(4, 3)
    write_cuts(table, chunks, MAX_CHUNK_CUTS - 1)
    assert chunks[0][:, -1].tolist() == [0.0, 1.0, 2.0]
    assert chunks[1][:, :3].T.tolist() == table[1:].tolist()
    assert np.isnan(chunks[0][:, :-1]).all()
    assert np.isnan(chunks[1][:, 3:]).all()
    with pytest.raises(ValueError, match="chunk"):
        write_cuts(table, chunks, 2 * MAX_CHUNK_CUTS - 1)
