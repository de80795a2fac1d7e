"""Tests of the upper hull of points."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.sddp.hydro_models.fpha_fitting import upper_facets


def grid(heights):
    """Return the points of a table of heights: rows are y, columns are x."""
    table = np.array(heights, dtype=float)
    y, x = np.meshgrid(np.arange(table.shape[0], dtype=float), np.arange(table.shape[1], dtype=float), indexing="ij")
    return x.ravel(), y.ravel(), table.ravel()


def values_of(facets, x, y):
    planes = np.array([facet.coefficients for facet in facets])
    return (planes[:, :1] + planes[:, 1:2] * x + planes[:, 2:] * y).min(axis=0)


def planes_by_brute_force(x, y, height):
    """Return every plane through three points that leaves no point above."""
    planes = set()
    for triple in combinations(range(x.size), 3):
        picked = list(triple)
        matrix = np.column_stack([np.ones(3), x[picked], y[picked]])
        if abs(np.linalg.det(matrix)) < 1e-9:
            continue
        plane = np.linalg.solve(matrix, height[picked])
        if (plane[0] + plane[1] * x + plane[2] * y - height > -1e-7).all():
            planes.add(tuple(np.round(plane, 6) + 0.0))
    return planes


def test_flat_table_has_one_plane():
    facets = upper_facets(*grid([[1.0] * 4] * 3))
    assert len(facets) == 1
    assert facets[0].coefficients == pytest.approx((1.0, 0.0, 0.0))
    assert len(facets[0].points) == 12


def test_tilted_table_has_one_plane():
    facets = upper_facets(*grid([[2 * x + 3 * y for x in range(4)] for y in range(5)]))
    assert [facet.coefficients for facet in facets] == [pytest.approx((0.0, 2.0, 3.0))]


def test_pyramid_has_four_sides():
    facets = upper_facets(*grid([[0, 0, 0], [0, 1, 0], [0, 0, 0]]))
    assert {tuple(round(value, 9) + 0.0 for value in facet.coefficients) for facet in facets} == {
        (0.0, 1.0, 0.0),
        (2.0, -1.0, 0.0),
        (0.0, 0.0, 1.0),
        (2.0, 0.0, -1.0),
    }


def test_interior_minimum_does_not_change_the_upper_hull():
    facets = upper_facets(*grid([[1, 1, 1], [1, -5, 1], [1, 1, 1]]))
    assert [facet.coefficients for facet in facets] == [pytest.approx((1.0, 0.0, 0.0))]
    assert len(facets[0].points) == 8


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=2, max_size=4))
def test_facets_equal_brute_force(heights):
    x, y, height = grid(heights)
    facets = upper_facets(x, y, height)
    planes = {tuple(round(value, 6) + 0.0 for value in facet.coefficients) for facet in facets}
    assert planes == planes_by_brute_force(x, y, height)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_nothing_is_above_and_every_facet_touches(data):
    rows, columns = data.draw(st.tuples(st.integers(2, 7), st.integers(2, 7)))
    number = st.floats(0, 100, allow_subnormal=False)
    x, y, height = grid(
        data.draw(st.lists(st.lists(number, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    )
    facets = upper_facets(x * 37.5, y * 12.25, height)
    hull = values_of(facets, x * 37.5, y * 12.25)
    assert (hull >= height - 1e-7).all()
    for facet in facets:
        c0, cx, cy = facet.coefficients
        points = list(facet.points)
        assert len(points) >= 3
        assert c0 + cx * 37.5 * x[points] + cy * 12.25 * y[points] == pytest.approx(height[points], abs=1e-7)
