"""Power from volume and flows: head, losses and efficiency of one plant."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.hydro import Hydro
from cobre.records import dataclass
from cobre.sddp.hydro_models.geometry import ReservoirGeometry
from cobre.sddp.hydro_models.tailrace_families import TailraceAtLevel

# MW per (m3/s and metre) of a machine that loses nothing: 1000 kg/m3 * 9.81 m/s2 / 1e6.
IDEAL_MW_PER_M3S_M = 9.81e-3


@dataclass(frozen=True, slots=True)
class ProductionFunction:
    """Exact production of a plant.

    tailrace: the curve of its families, where it has some. mean_inflow_m3s: the mean of its inflow history; None or not
    above 0 where there is none.
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
        """At a volume, with flows that raise the tailrace."""
        efficiency = 1.0 if self.hydro.efficiency is None else self.hydro.efficiency.value
        gross_m = self.geometry.height_at(volume_hm3) - self._tailrace_m(turbined_m3s + spilled_m3s)
        return IDEAL_MW_PER_M3S_M * efficiency * turbined_m3s * net_head_m(self.hydro, gross_m)

    def powers_mw(self, volume_hm3: Floats, turbined_m3s: Floats, spilled_m3s: Floats) -> Floats:
        """As `power_mw`, at points of volume and flow (rows) and amounts of spillage (columns)."""
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
    """The level below a plant; 0 when none is given."""
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
    """As `tailrace_m`, for many outflows."""
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
    """What is left of a head after hydraulic losses; never negative."""
    losses = hydro.hydraulic_losses
    if losses is None:
        return max(0.0, gross_m)
    lost_m = gross_m * (losses.value or 0.0) if losses.type == "factor" else losses.value_m or 0.0
    return max(0.0, gross_m - lost_m)
