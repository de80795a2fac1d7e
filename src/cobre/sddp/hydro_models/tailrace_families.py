"""Families of tailrace curves: the level below a plant by its outflow, for several levels of the reservoir downstream.

A family is a polynomial of degree four on each of its segments, one after another; beyond the outermost segments the
level stays. Between the levels of two families it is linear, beyond them that of the nearest family.
"""

from collections.abc import Iterator

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Table
from cobre.records import dataclass

COEFFICIENTS = tuple(f"coefficient_{power}" for power in range(5))


@dataclass(frozen=True, slots=True)
class TailraceFamily:
    """Segments in order of outflow: `limits_m3s` are their ends, one more than there are rows of coefficients."""

    reference_level_m: float
    limits_m3s: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def level_m(self, outflow_m3s: float) -> float:
        """The tailrace level at an outflow; beyond the limits that of the nearest one."""
        flow = min(max(outflow_m3s, self.limits_m3s[0]), self.limits_m3s[-1])
        segment = 0
        while segment < len(self.coefficients) - 1 and flow > self.limits_m3s[segment + 1]:
            segment += 1
        level = 0.0
        for coefficient in reversed(self.coefficients[segment]):
            level = level * flow + coefficient
        return level

    def levels_m(self, outflow_m3s: Floats) -> Floats:
        """As `level_m`, for many outflows."""
        flow = np.clip(outflow_m3s, self.limits_m3s[0], self.limits_m3s[-1])
        segment = np.searchsorted(self.limits_m3s[1:-1], flow, side="left")
        coefficients = np.array(self.coefficients)[segment]
        level = np.zeros_like(flow)
        for power in reversed(range(coefficients.shape[-1])):
            level = level * flow + coefficients[..., power]
        return level


@dataclass(frozen=True, slots=True)
class TailraceAtLevel:
    """The tailrace curve at one level of the reservoir downstream: a weighted pair of families."""

    lower: TailraceFamily
    upper: TailraceFamily
    weight: float

    def level_m(self, outflow_m3s: float) -> float:
        """The tailrace level at an outflow, interpolated between the two families."""
        low = self.lower.level_m(outflow_m3s)
        return low if self.weight == 0.0 else low + self.weight * (self.upper.level_m(outflow_m3s) - low)

    def levels_m(self, outflow_m3s: Floats) -> Floats:
        """As `level_m`, for many outflows."""
        low = self.lower.levels_m(outflow_m3s)
        return low if self.weight == 0.0 else low + self.weight * (self.upper.levels_m(outflow_m3s) - low)


@dataclass(frozen=True, slots=True)
class TailraceFamilies:
    """The families of one plant in order of their reference level."""

    families: tuple[TailraceFamily, ...]

    def at(self, downstream_level_m: float | None) -> TailraceAtLevel:
        """The curve for a level downstream; None: there is no such level, and the lowest family holds."""
        lowest, highest = self.families[0], self.families[-1]
        if downstream_level_m is None or downstream_level_m <= lowest.reference_level_m:
            return TailraceAtLevel(lowest, lowest, 0.0)
        for lower, upper in zip(self.families, self.families[1:], strict=False):
            step = upper.reference_level_m - lower.reference_level_m
            if downstream_level_m < upper.reference_level_m and step > 0.0:
                return TailraceAtLevel(lower, upper, (downstream_level_m - lower.reference_level_m) / step)
        return TailraceAtLevel(highest, highest, 0.0)


def tailrace_families(table: Table | None) -> dict[int, TailraceFamilies]:
    """Tailrace families by hydro id, for the plants that have any."""
    found: dict[int, list[TailraceFamily]] = {}
    for hydro_id, family in _families(table):
        found.setdefault(hydro_id, []).append(family)
    return {
        hydro_id: TailraceFamilies(tuple(sorted(families, key=lambda family: family.reference_level_m)))
        for hydro_id, families in found.items()
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
