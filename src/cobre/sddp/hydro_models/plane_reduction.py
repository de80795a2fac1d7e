"""Fewer planes: neighbours that say nearly the same become one, half way between them.

Planes are looked at in their order. The next one joins the one before it, which may be a mean already, when the two
are near enough: by the angle between them, or by the mean square of their distance over volumes and flows, as a share
of the square of the most power. The plane that forbids power without flow stays as it is.
"""

import math

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.production import PlaneReduction
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """The region over which planes are compared, and the largest exact power in it."""

    min_volume_hm3: float
    max_volume_hm3: float
    max_turbined_m3s: float
    max_power_mw: float


def reduce_planes(planes: Floats, reduction: PlaneReduction, region: Region) -> Floats:
    """Rows of (gamma_0, gamma_v, gamma_q, gamma_s), neighbours merged."""
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
    """No power without flow, whatever the volume."""
    return bool(plane[0] == 0.0 and plane[1] == 0.0)


def _are_near(one: Floats, other: Floats, reduction: PlaneReduction, region: Region) -> bool:
    if reduction.method == "angle":
        return angle_deg(one, other) <= (reduction.tolerance_deg or 0.0)
    return distance_pct(one, other, region, reduction.n_samples or 1) <= (reduction.tolerance_pct or 0.0)


def angle_deg(one: Floats, other: Floats) -> float:
    """Between the planes over volume and flow."""
    first, second = (np.array([plane[1], plane[2], -1.0]) for plane in (one, other))
    across = math.hypot(*np.cross(first, second).tolist())
    along = math.fsum((first * second).tolist())
    return math.degrees(math.atan2(across, along))


def distance_pct(one: Floats, other: Floats, region: Region, samples: int) -> float:
    """Mean square of the distance in percent of the square of the most power, over points spread evenly."""
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
    """The digits of a number mirrored at the point: points of a Halton sequence."""
    value, share = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        value += digit * share
        share /= base
    return value
