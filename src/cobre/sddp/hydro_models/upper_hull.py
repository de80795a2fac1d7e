"""The upper side of the convex hull of points over a plane: the least concave function above them."""

import numpy as np

from cobre import _native
from cobre.core.arrays import Floats
from cobre.records import dataclass

# Heights that differ by less than this share of the largest are the same height.
TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class Facet:
    """A plane height = c0 + cx * x + cy * y, and the points that lie on it."""

    coefficients: tuple[float, float, float]
    points: tuple[int, ...]


def upper_facets(x: Floats, y: Floats, height: Floats) -> list[Facet]:
    """Facets that are seen from above, by wrapping: from every edge on to the steepest plane beyond it.

    Points that share a plane make one facet however many they are, which grids do often. A deck has hundreds of hulls,
    which native code finds.
    """
    x, y, height = (np.ascontiguousarray(values, np.float64) for values in (x, y, height))
    return [Facet(plane, tuple(points)) for plane, points in _native.upper_facets(x, y, height, TOLERANCE)]
