"""Planes of the production function, fitted to a plant's geometry.

The exact function without spillage, up to the most that the plant can generate, on a grid of volumes and flows, has a
least concave function above it. Its planes are scaled so that their minimum, which is what the LP sees, fits the
function best over the grid. Spilled water raises the tailrace: each plane falls with it as the exact function does, on
average, up to twice the plant's mean inflow or another largest flow.

How much it falls is what the formats differ in. By the rules of 0.18 it is the line that fits best at the facet's point
of most power. By those of 0.19 it is the mean, over the points of the grid at which no other plane is lower, of the
lines through the point without spillage that fit best.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from math import fsum

import numpy as np

from cobre import _native
from cobre.core.arrays import Floats
from cobre.core.case import FormatVersion
from cobre.core.hydro import FphaConfig, Hydro, PlaneReduction
from cobre.records import dataclass
from cobre.sddp.hydro_models.production_function import ProductionFunction
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry

# Fewer planes: nearly equal neighbours are replaced by their average.
#
# Planes are looked at in their order. The next one joins the one before it, which may be a mean already, when the two
# are near enough: by the angle between them, or by the mean square of their distance over volumes and flows, as a
# share of the square of the most power. The plane that forbids power without flow stays as it is.


@dataclass(frozen=True, slots=True)
class Region:
    """The region over which planes are compared, and the largest exact power in it."""

    min_volume_hm3: float
    max_volume_hm3: float
    max_turbined_m3s: float
    max_power_mw: float


def reduce_planes(planes: Floats, reduction: PlaneReduction, region: Region) -> Floats:
    """Merge neighbouring planes; rows are (gamma_0, gamma_v, gamma_q, gamma_s)."""
    kept: list[Floats] = []
    for plane in planes:
        if (
            kept
            and not _is_closed(kept[-1])
            and not _is_closed(plane)
            and _are_near(kept[-1], plane, reduction, region)
        ):
            kept[-1] = 0.5 * (kept[-1] + plane)
        else:
            kept.append(plane)
    return np.array(kept).reshape(-1, planes.shape[1])


def _is_closed(plane: Floats) -> bool:
    """Return whether there is no power without flow, whatever the volume."""
    return bool(plane[0] == 0.0 and plane[1] == 0.0)


def _are_near(one: Floats, other: Floats, reduction: PlaneReduction, region: Region) -> bool:
    if reduction.method == "angle":
        return angle_deg(one, other) <= (reduction.tolerance_deg or 0.0)
    return distance_pct(one, other, region, reduction.n_samples or 1) <= (reduction.tolerance_pct or 0.0)


def angle_deg(one: Floats, other: Floats) -> float:
    """Return the angle between the planes over volume and flow."""
    first, second = (np.array([plane[1], plane[2], -1.0]) for plane in (one, other))
    across = math.hypot(*np.cross(first, second).tolist())
    along = math.fsum((first * second).tolist())
    return math.degrees(math.atan2(across, along))


def distance_pct(one: Floats, other: Floats, region: Region, samples: int) -> float:
    """Return the mean square distance in percent of the square of the most power, over points spread evenly."""
    if region.max_power_mw <= 0.0:
        return 0.0
    span = region.max_volume_hm3 - region.min_volume_hm3
    squares = []
    for number in range(1, samples + 1):
        volume = region.min_volume_hm3 + span * _radical_inverse(number, 2)
        flow = region.max_turbined_m3s * _radical_inverse(number, 3)
        gap = (one[0] - other[0]) + (one[1] - other[1]) * volume + (one[2] - other[2]) * flow
        squares.append(float(gap / region.max_power_mw) ** 2)
    return 100.0 * math.fsum(squares) / samples


def _radical_inverse(number: int, base: int) -> float:
    """Mirror the digits of a number at the point: points of a Halton sequence."""
    value, share = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        value += digit * share
        share /= base
    return value


# The upper side of the convex hull of points over a plane: the least concave function above them.

# Heights that differ by less than this share of the largest are the same height.
PLANE_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class Facet:
    """A plane height = c0 + cx * x + cy * y, and the points on it."""

    coefficients: tuple[float, float, float]
    points: tuple[int, ...]


def upper_facets(x: Floats, y: Floats, height: Floats) -> list[Facet]:
    """Find facets that are seen from above by wrapping: from every edge on to the steepest plane beyond it.

    Points that share a plane make one facet however many they are, which grids do often. A deck has hundreds of hulls,
    which native code finds.
    """
    x, y, height = (np.ascontiguousarray(values, np.float64) for values in (x, y, height))
    return [Facet(plane, tuple(points)) for plane, points in _native.upper_facets(x, y, height, PLANE_TOLERANCE)]


SPILLAGE_POINTS = 9
SPILLAGE_POINTS_019 = 101
SAME_HEIGHT = 1e-9  # of the largest: planes that differ by less at a point share it
ROUNDING_NOISE = 1e-12

# Windows narrower than this are one volume, around which planes are fitted on two.
MIN_WINDOW_HM3 = 1e-9
ONE_VOLUME_REACH_HM3 = 1.0


@dataclass(frozen=True, slots=True)
class _Grid:
    volume_hm3: Floats
    turbined_m3s: Floats
    exact_mw: Floats  # without limits of the machines
    power_mw: Floats  # up to the most that they can


@dataclass(frozen=True, slots=True)
class Fit:
    """Planes of a plant, rows of (gamma_0, gamma_v, gamma_q, gamma_s), and the exact function on the grid."""

    planes: Floats
    volume_hm3: Floats
    turbined_m3s: Floats
    exact_mw: Floats  # up to the most that the machines can do

    def fitted_mw(self) -> Floats:
        """Return the maximum generation by the planes at the points of the grid without spillage, MW."""
        values = self.planes[:, 0:1] + self.planes[:, 1:2] * self.volume_hm3 + self.planes[:, 2:3] * self.turbined_m3s
        least: Floats = values.min(axis=0)
        return least


def fit_production(
    function: ProductionFunction,
    config: FphaConfig,
    reduction: PlaneReduction | None = None,
    rules: FormatVersion = "0.18",
) -> Fit:
    """Fit planes, in order of falling gamma_v, and return them with their grid; `reduction` thins them out."""
    grid = _grid(function, config)
    planes = _planes(function, grid, config, rules)
    if reduction is not None:
        volume, flow = grid.volume_hm3, grid.turbined_m3s
        region = Region(float(volume.min()), float(volume.max()), float(flow.max()), float(grid.power_mw.max()))
        planes = reduce_planes(planes, reduction, region)
    return Fit(planes, grid.volume_hm3, grid.turbined_m3s, grid.power_mw)


def _planes(function: ProductionFunction, grid: _Grid, config: FphaConfig, rules: FormatVersion) -> Floats:
    facets = upper_facets(grid.volume_hm3, grid.turbined_m3s, grid.power_mw)
    hull = np.array([facet.coefficients for facet in facets])
    heights = _without_rounding_noise(_best_scale(hull, grid) * hull, grid)
    if rules == "0.18":
        falls = _falls_with_spillage(function, facets, grid)
    else:
        falls = _mean_falls(function, hull, grid, config.spillage_fit_max_m3s or function.max_spilled_m3s)
    planes = [(*height, fall) for height, fall in zip(heights.tolist(), falls, strict=True)]
    return np.array(sorted(planes, key=lambda plane: (-plane[1], plane[2])))


def fitting_volumes(hydro: Hydro, geometry: ReservoirGeometry, config: FphaConfig) -> Floats:
    """Return volumes of the grid, hm3, spread over the range of the geometry, or the part of it inside a window.

    Percentiles (0 to 1) are shares of the operating range. A window of one volume, which plants without storage have,
    becomes two volumes around it, as far as the geometry goes; a geometry of one point has the same level at both.
    """
    minimum, maximum = float(geometry.volume_hm3[0]), float(geometry.volume_hm3[-1])
    low, high, window = minimum, maximum, config.fitting_window
    if window is not None:
        low = _limit(hydro, window.volume_min_hm3, window.volume_min_percentile, minimum)
        high = _limit(hydro, window.volume_max_hm3, window.volume_max_percentile, maximum)
    low, high = min(max(low, minimum), maximum), min(max(high, minimum), maximum)
    if high - low > MIN_WINDOW_HM3:
        return _evenly(low, high, config.volume_discretization_points)
    below, above = low - ONE_VOLUME_REACH_HM3, high + ONE_VOLUME_REACH_HM3
    is_one_point = maximum - minimum <= MIN_WINDOW_HM3
    return np.array([below, above] if is_one_point else [max(below, minimum), min(above, maximum)])


@lru_cache(maxsize=256)
def _evenly(low: float, high: float, count: int) -> Floats:
    """Return numbers spread evenly; the levels downstream of a plant share them."""
    numbers = np.linspace(low, high, count)
    numbers.setflags(write=False)
    return numbers


def _limit(hydro: Hydro, volume_hm3: float | None, percentile: float | None, default_hm3: float) -> float:
    if volume_hm3 is not None:
        return volume_hm3
    if percentile is None:
        return default_hm3
    reservoir = hydro.reservoir
    return reservoir.min_storage_hm3 + percentile * (reservoir.max_storage_hm3 - reservoir.min_storage_hm3)


def _grid(function: ProductionFunction, config: FphaConfig) -> _Grid:
    volumes = fitting_volumes(function.hydro, function.geometry, config)
    max_flow = config.turbined_fit_max_m3s or function.hydro.generation.max_turbined_m3s
    flows = _evenly(0.0, max_flow, config.turbine_discretization_points)
    volume, flow = np.empty((2, len(flows), len(volumes)))
    volume[:], flow[:] = volumes, flows[:, None]
    volume, flow = volume.reshape(-1), flow.reshape(-1)
    exact = function.powers_mw(volume, flow, np.zeros(1))[:, 0]
    return _Grid(volume, flow, exact, np.minimum(exact, function.hydro.generation.max_generation_mw))


def _without_rounding_noise(heights: Floats, grid: _Grid) -> Floats:
    """Set coefficients to zero that only rounding keeps from it: they would spoil the scaling of an LP."""
    reach = np.array([1.0, np.abs(grid.volume_hm3).max(), grid.turbined_m3s.max()])
    return np.where(np.abs(heights) * reach > ROUNDING_NOISE * grid.power_mw.max(), heights, 0.0)


def _best_scale(slopes: Floats, grid: _Grid) -> float:
    """Return the factor that brings the minimum of all planes nearest to the function, by least squares."""
    values = slopes[:, 0:1] + slopes[:, 1:2] * grid.volume_hm3 + slopes[:, 2:3] * grid.turbined_m3s
    hull = values.min(axis=0)
    squares = fsum((hull * hull).tolist())
    return fsum((grid.power_mw * hull).tolist()) / squares if squares > 0 else 1.0


def _falls_with_spillage(function: ProductionFunction, facets: Sequence[Facet], grid: _Grid) -> list[float]:
    """Return by facet MW per m3/s spilled at its point of most power: the best line over the spilled flows."""
    max_spilled = function.max_spilled_m3s
    if max_spilled <= 0:
        return [0.0] * len(facets)
    ranks = list(zip(grid.exact_mw.tolist(), grid.turbined_m3s.tolist(), grid.volume_hm3.tolist(), strict=True))
    points = [max(facet.points, key=ranks.__getitem__) for facet in facets]
    spilled = _evenly(0.0, max_spilled, SPILLAGE_POINTS)
    power = function.powers_mw(grid.volume_hm3[points], grid.turbined_m3s[points], spilled)
    centred = spilled - max_spilled / 2.0
    squares = fsum((centred * centred).tolist())
    products = centred * (power - power[:, :1])
    return [min(0.0, fsum(row) / squares) for row in products.tolist()]


def _mean_falls(function: ProductionFunction, hull: Floats, grid: _Grid, max_spilled_m3s: float) -> list[float]:
    """Return by plane MW per m3/s spilled: the mean over the points at which it is (among) the lowest."""
    if max_spilled_m3s <= 0:
        return [0.0] * len(hull)
    spilled = np.linspace(0.0, max_spilled_m3s, SPILLAGE_POINTS_019)
    power = function.powers_mw(grid.volume_hm3, grid.turbined_m3s, spilled)
    slopes = ((power - power[:, :1]) * spilled).sum(axis=1) / (spilled * spilled).sum()
    values = hull[:, 0:1] + hull[:, 1:2] * grid.volume_hm3 + hull[:, 2:3] * grid.turbined_m3s
    lowest = values <= values.min(axis=0) + SAME_HEIGHT * max(1.0, float(np.abs(values).max()))
    return [min(0.0, float(slopes[points].mean())) for points in lowest]
