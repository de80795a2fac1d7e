"""The upper side of the convex hull of points over a plane: the least concave function above them."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from cobre.core.arrays import Floats

Edge = tuple[int, int]
# Heights that differ by less than this share of the largest are the same height.
TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class Facet:
    """A plane height = c0 + cx * x + cy * y, and the points that lie on it."""

    coefficients: tuple[float, float, float]
    points: tuple[int, ...]


def upper_facets(x: Floats, y: Floats, height: Floats) -> list[Facet]:
    """Facets that are seen from above, by wrapping: from every edge on to the steepest plane beyond it.

    Points that share a plane make one facet however many they are, which grids do often.
    """
    tolerance = TOLERANCE * max(1.0, float(np.abs(height).max()))
    facets: dict[tuple[int, ...], Facet] = {}
    done: set[Edge] = set()
    waiting = deque([_first_edge(x, y, height)])
    while waiting:
        edge = waiting.popleft()
        if edge in done:
            continue
        facet = _facet_beyond(edge, x, y, height, tolerance)
        done.add(edge)
        if facet is None or facet.points in facets:
            continue
        facets[facet.points] = facet
        for start, end in _outline(facet.points, x, y):
            done.add((start, end))
            waiting.append((end, start))
    return list(facets.values())


def _first_edge(x: Floats, y: Floats, height: Floats) -> Edge:
    """From the lowest row of points: its first two that the hull touches, so that all points are on the left."""
    row = np.flatnonzero(y == y.min())
    row = row[np.argsort(x[row], kind="stable")]
    start = int(row[0])
    slopes = (height[row[1:]] - height[start]) / (x[row[1:]] - x[start])
    steepest = np.flatnonzero(slopes >= slopes.max() - TOLERANCE * max(1.0, float(np.abs(slopes).max())))
    return start, int(row[1 + steepest[-1]])


def _facet_beyond(edge: Edge, x: Floats, y: Floats, height: Floats, tolerance: float) -> Facet | None:
    """The plane through an edge and the point to the left of it that leaves no point above; None at the border."""
    start, end = edge
    along_x, along_y = x[end] - x[start], y[end] - y[start]
    left = along_x * (y - y[start]) - along_y * (x - x[start])
    span = along_x**2 + along_y**2
    is_left = left > 1e-12 * span
    if not is_left.any():
        return None
    share = (along_x * (x - x[start]) + along_y * (y - y[start])) / span
    rise = height - (height[start] + share * (height[end] - height[start]))
    steepness = np.where(is_left, rise / np.where(is_left, left, 1.0), -np.inf)
    best = int(np.argmax(steepness))
    coefficients = _plane(x[[start, end, best]], y[[start, end, best]], height[[start, end, best]])
    gap = coefficients[0] + coefficients[1] * x + coefficients[2] * y - height
    on_plane = np.flatnonzero(np.abs(gap) <= tolerance)
    return Facet(coefficients, tuple(int(point) for point in on_plane))


def _plane(x: Floats, y: Floats, height: Floats) -> tuple[float, float, float]:
    """Through three points, by Cramer's rule."""
    x1, x2 = float(x[1] - x[0]), float(x[2] - x[0])
    y1, y2 = float(y[1] - y[0]), float(y[2] - y[0])
    h1, h2 = float(height[1] - height[0]), float(height[2] - height[0])
    determinant = x1 * y2 - x2 * y1
    slope_x = (h1 * y2 - h2 * y1) / determinant
    slope_y = (x1 * h2 - x2 * h1) / determinant
    return float(height[0]) - slope_x * float(x[0]) - slope_y * float(y[0]), slope_x, slope_y


def _outline(points: tuple[int, ...], x: Floats, y: Floats) -> list[Edge]:
    """The edges around a facet, with the facet on their left (Andrew's monotone chains)."""
    ordered = sorted(points, key=lambda point: (x[point], y[point]))
    chain = _half_outline(ordered, x, y) + _half_outline(ordered[::-1], x, y)
    return list(zip(chain, chain[1:] + chain[:1], strict=True))


def _half_outline(ordered: list[int], x: Floats, y: Floats) -> list[int]:
    chain: list[int] = []
    for point in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point, x, y) <= 0:
            chain.pop()
        chain.append(point)
    return chain[:-1]


def _turn(a: int, b: int, c: int, x: Floats, y: Floats) -> float:
    return float((x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]))
