"""Power from volume and flows: head, losses and efficiency of one plant."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Table
from cobre.core.hydro import Hydro
from cobre.records import dataclass
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry

# Volume, level and area of reservoirs, linear between the points of hydro_geometry.parquet.


# Families of tailrace curves: the level below a plant by its outflow, for several levels of the reservoir downstream.
#
# A family is a polynomial of degree four on each of its segments, one after another; beyond the outermost segments
# the level stays. Between the levels of two families it is linear, beyond them that of the nearest family.

COEFFICIENTS = tuple(f"coefficient_{power}" for power in range(5))


@dataclass(frozen=True)  # without slots: arrays are kept in the instance
class TailraceFamily:
    """Segments in order of outflow: `limits_m3s` are their ends, one more than there are rows of coefficients."""

    reference_level_m: float
    limits_m3s: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def level_m(self, outflow_m3s: float) -> float:
        """Return the tailrace level at an outflow; beyond the limits that of the nearest one."""
        flow = min(max(outflow_m3s, self.limits_m3s[0]), self.limits_m3s[-1])
        segment = 0
        while segment < len(self.coefficients) - 1 and flow > self.limits_m3s[segment + 1]:
            segment += 1
        level = 0.0
        for coefficient in reversed(self.coefficients[segment]):
            level = level * flow + coefficient
        return level

    def levels_m(self, outflow_m3s: Floats) -> Floats:
        """Return `level_m` for many outflows."""
        flow = np.minimum(np.maximum(outflow_m3s, self.limits_m3s[0]), self.limits_m3s[-1])
        inner_limits, by_power = self._arrays
        segment = inner_limits.searchsorted(flow) if len(inner_limits) else None
        coefficients = by_power[:, 0] if segment is None else by_power.take(segment, axis=1)
        level = np.zeros(flow.shape)
        for coefficient in coefficients[::-1]:
            level *= flow
            level += coefficient
        return level

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats]:
        """Limits between segments; coefficients by power and segment."""
        return np.array(self.limits_m3s[1:-1]), np.ascontiguousarray(np.array(self.coefficients).T)


@dataclass(frozen=True, slots=True)
class TailraceAtLevel:
    """The tailrace curve at one level of the reservoir downstream: a weighted pair of families."""

    lower: TailraceFamily
    upper: TailraceFamily
    weight: float

    def level_m(self, outflow_m3s: float) -> float:
        """Return the tailrace level at an outflow, interpolated between the two families."""
        low = self.lower.level_m(outflow_m3s)
        return low if self.weight == 0.0 else low + self.weight * (self.upper.level_m(outflow_m3s) - low)

    def levels_m(self, outflow_m3s: Floats) -> Floats:
        """Return `level_m` for many outflows."""
        low = self.lower.levels_m(outflow_m3s)
        return low if self.weight == 0.0 else low + self.weight * (self.upper.levels_m(outflow_m3s) - low)


@dataclass(frozen=True, slots=True)
class TailraceFamilies:
    """The families of one plant in order of their reference level."""

    families: tuple[TailraceFamily, ...]

    def at(self, downstream_level_m: float | None) -> TailraceAtLevel:
        """Return the curve for a level downstream; without a level that of the lowest family."""
        lowest, highest = self.families[0], self.families[-1]
        if downstream_level_m is None or downstream_level_m <= lowest.reference_level_m:
            return TailraceAtLevel(lowest, lowest, 0.0)
        for lower, upper in zip(self.families, self.families[1:], strict=False):
            step = upper.reference_level_m - lower.reference_level_m
            if downstream_level_m < upper.reference_level_m and step > 0.0:
                return TailraceAtLevel(lower, upper, (downstream_level_m - lower.reference_level_m) / step)
        return TailraceAtLevel(highest, highest, 0.0)


def tailrace_families(table: Table | None) -> dict[int, TailraceFamilies]:
    """Return tailrace families by hydro id, for the plants that have any."""
    by_hydro: dict[int, list[TailraceFamily]] = {}
    for hydro_id, family in _families(table):
        by_hydro.setdefault(hydro_id, []).append(family)
    return {
        hydro_id: TailraceFamilies(tuple(sorted(families, key=lambda family: family.reference_level_m)))
        for hydro_id, families in by_hydro.items()
    }


def _families(table: Table | None) -> Iterator[tuple[int, TailraceFamily]]:
    if table is None:
        return
    for hydro_id, family_id in sorted(set(zip(table["hydro_id"].tolist(), table["family_id"].tolist(), strict=True))):
        rows = np.flatnonzero((table["hydro_id"] == hydro_id) & (table["family_id"] == family_id))
        rows = rows[np.argsort(table["outflow_min_m3s"][rows], kind="stable")]
        limits = (float(table["outflow_min_m3s"][rows[0]]), *table["outflow_max_m3s"][rows].tolist())
        coefficients = np.column_stack([table[name][rows] for name in COEFFICIENTS])
        level = float(table["downstream_reference_level_m"][rows[0]])
        yield hydro_id, TailraceFamily(level, limits, tuple(map(tuple, coefficients.tolist())))


# MW per (m3/s and metre) of a machine that loses nothing: 1000 kg/m3 * 9.81 m/s2 / 1e6.
IDEAL_MW_PER_M3S_M = 9.81e-3


@dataclass(frozen=True, slots=True)
class ProductionFunction:
    """Exact production of a plant.

    tailrace: the curve of its families, where it has some. mean_inflow_m3s: the mean of its inflow history; None or not
    above 0 if there is none.
    """

    hydro: Hydro
    geometry: ReservoirGeometry
    tailrace: TailraceAtLevel | None = None
    mean_inflow_m3s: float | None = None

    @property
    def max_spilled_m3s(self) -> float:
        """The largest spilled flow that a fit considers: twice the mean inflow, else twice the turbines' capacity."""
        if self.mean_inflow_m3s is not None and self.mean_inflow_m3s > 0.0:
            return 2.0 * self.mean_inflow_m3s
        return 2.0 * self.hydro.generation.max_turbined_m3s

    def power_mw(self, volume_hm3: float, turbined_m3s: float, spilled_m3s: float = 0.0) -> float:
        """Return the power at a volume, with flows that raise the tailrace."""
        efficiency = 1.0 if self.hydro.efficiency is None else self.hydro.efficiency.value
        gross_m = self.geometry.height_at(volume_hm3) - self._tailrace_m(turbined_m3s + spilled_m3s)
        return IDEAL_MW_PER_M3S_M * efficiency * turbined_m3s * net_head_m(self.hydro, gross_m)

    def powers_mw(self, volume_hm3: Floats, turbined_m3s: Floats, spilled_m3s: Floats) -> Floats:
        """Return `power_mw` at points of volume and flow (rows) and amounts of spillage (columns)."""
        efficiency = 1.0 if self.hydro.efficiency is None else self.hydro.efficiency.value
        outflow = turbined_m3s[:, None] + spilled_m3s
        level = np.interp(volume_hm3, self.geometry.volume_hm3, self.geometry.height_m)
        tailrace = tailraces_m(self.hydro, outflow) if self.tailrace is None else self.tailrace.levels_m(outflow)
        gross = level[:, None] - tailrace
        losses = self.hydro.hydraulic_losses
        if losses is not None:
            gross = gross - (gross * (losses.value or 0.0) if losses.type == "factor" else losses.value_m or 0.0)
        power: Floats = IDEAL_MW_PER_M3S_M * efficiency * turbined_m3s[:, None] * np.maximum(0.0, gross)
        return power

    def _tailrace_m(self, outflow_m3s: float) -> float:
        if self.tailrace is not None:
            return self.tailrace.level_m(outflow_m3s)
        return tailrace_m(self.hydro, outflow_m3s)


def tailrace_m(hydro: Hydro, outflow_m3s: float) -> float:
    """Return the level below a plant; 0 when none is given."""
    tailrace = hydro.tailrace
    if tailrace is None:
        return 0.0
    if tailrace.points is not None:
        points = sorted(tailrace.points, key=lambda point: point.outflow_m3s)
        flows = [point.outflow_m3s for point in points]
        return float(np.interp(outflow_m3s, flows, [point.height_m for point in points]))
    level = 0.0
    for coefficient in reversed(tailrace.coefficients or ()):
        level = level * outflow_m3s + coefficient
    return level


def tailraces_m(hydro: Hydro, outflow_m3s: Floats) -> Floats:
    """Return `tailrace_m` for many outflows."""
    tailrace = hydro.tailrace
    if tailrace is None:
        return np.zeros_like(outflow_m3s)
    if tailrace.points is not None:
        points = sorted(tailrace.points, key=lambda point: point.outflow_m3s)
        flows, heights = [point.outflow_m3s for point in points], [point.height_m for point in points]
        return np.asarray(np.interp(outflow_m3s, flows, heights))
    level = np.zeros_like(outflow_m3s)
    for coefficient in reversed(tailrace.coefficients or ()):
        level = level * outflow_m3s + coefficient
    return level


def net_head_m(hydro: Hydro, gross_m: float) -> float:
    """Return the net head after hydraulic losses; never negative."""
    losses = hydro.hydraulic_losses
    if losses is None:
        return max(0.0, gross_m)
    lost_m = gross_m * (losses.value or 0.0) if losses.type == "factor" else losses.value_m or 0.0
    return max(0.0, gross_m - lost_m)
