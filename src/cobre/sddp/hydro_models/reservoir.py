"""Reservoirs: level and area by volume, and evaporation as a straight line in the volume."""

from calendar import monthrange

import numpy as np

from cobre.core.arrays import Floats, distinct_values, runs, sum_in_order
from cobre.core.case import Table
from cobre.core.hydro import Hydro
from cobre.core.temporal import Stage
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class ReservoirGeometry:
    """Height and area of a reservoir at some volumes, in order of volume; linear in between."""

    volume_hm3: Floats
    height_m: Floats
    area_km2: Floats

    def height_at(self, volume_hm3: float) -> float:
        """Return the level; that of the end points outside of them."""
        return float(np.interp(volume_hm3, self.volume_hm3, self.height_m))

    def mean_height(self, min_hm3: float, max_hm3: float) -> float:
        """Return the mean level between two volumes."""
        if max_hm3 <= min_hm3:
            return self.height_at(min_hm3)
        inside = self.volume_hm3[(self.volume_hm3 > min_hm3) & (self.volume_hm3 < max_hm3)].tolist()
        volumes = [min_hm3, *inside, max_hm3]
        heights = [self.height_at(volume) for volume in volumes]
        pieces = zip(volumes, volumes[1:], heights, heights[1:], strict=False)
        total = sum_in_order((right - left) * (low + high) / 2.0 for left, right, low, high in pieces)
        return float(total / (max_hm3 - min_hm3))

    def area_at(self, volume_hm3: float) -> float:
        """Return the area; that of the end points outside of them."""
        return float(np.interp(volume_hm3, self.volume_hm3, self.area_km2))

    def area_slope_at(self, volume_hm3: float) -> float:
        """Return km2 per hm3 of the piece that holds a volume: at a point the one above it, outside the outermost."""
        pieces = self.volume_hm3.size - 1
        if pieces < 1:
            return 0.0
        above = int(np.searchsorted(self.volume_hm3, volume_hm3, side="right"))
        left = min(max(above - 1, 0), pieces - 1)
        rise = self.area_km2[left + 1] - self.area_km2[left]
        return float(rise / (self.volume_hm3[left + 1] - self.volume_hm3[left]))


def geometry_by_hydro(table: Table | None) -> dict[int, ReservoirGeometry]:
    """Return the rows of system/hydro_geometry.parquet as geometries, by hydro id."""
    if table is None:
        return {}
    order = np.argsort(table["hydro_id"], kind="stable")
    columns = [np.asarray(table[name], np.float64)[order] for name in ("volume_hm3", "height_m", "area_km2")]
    ids = table["hydro_id"][order]
    distinct = distinct_values(ids)
    parts = (runs(column, ids.searchsorted(distinct).tolist()) for column in columns)
    return {hydro_id: ReservoirGeometry(*points) for hydro_id, *points in zip(distinct.tolist(), *parts, strict=True)}


@dataclass(frozen=True, slots=True)
class EvaporationLine:
    """Evaporation in m3/s as a line in the stored volume: k0 + kv * volume (hm3)."""

    k0: float
    kv: float


NONE = EvaporationLine(0.0, 0.0)


def evaporation_line(hydro: Hydro, geometry: ReservoirGeometry | None, stage: Stage) -> EvaporationLine:
    """Return the line of a plant in a stage: coefficient and hours are those of the month in which the stage starts.

    One millimetre from one square kilometre is a thousand cubic metres, hence the 3.6 when hours become seconds.
    """
    if hydro.evaporation is None or geometry is None:
        return NONE
    month = stage.start_date.month - 1
    seconds_factor = 3.6 * hours_of_month(stage)
    coefficient_mm = hydro.evaporation.coefficients_mm[month]
    reference_hm3 = _reference_volume(hydro, month)
    kv = coefficient_mm * geometry.area_slope_at(reference_hm3) / seconds_factor
    k0 = coefficient_mm * geometry.area_at(reference_hm3) / seconds_factor - kv * reference_hm3
    return EvaporationLine(k0, kv)


def hours_of_month(stage: Stage) -> float:
    """Return hours of the month in which a stage starts."""
    return 24.0 * monthrange(stage.start_date.year, stage.start_date.month)[1]


def _reference_volume(hydro: Hydro, month: int) -> float:
    evaporation = hydro.evaporation
    if evaporation is not None and evaporation.reference_volumes_hm3 is not None:
        return evaporation.reference_volumes_hm3[month]
    return (hydro.reservoir.min_storage_hm3 + hydro.reservoir.max_storage_hm3) / 2.0
