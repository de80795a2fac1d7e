"""Volume, level and area of reservoirs, linear between the points of hydro_geometry.parquet."""

import numpy as np

from cobre.core.arrays import Floats, sum_in_order
from cobre.core.case import Table
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class ReservoirGeometry:
    """Height and area of a reservoir at some volumes, in order of volume; linear in between."""

    volume_hm3: Floats
    height_m: Floats
    area_km2: Floats

    def height_at(self, volume_hm3: float) -> float:
        """The level; that of the end points outside of them."""
        return float(np.interp(volume_hm3, self.volume_hm3, self.height_m))

    def mean_height(self, min_hm3: float, max_hm3: float) -> float:
        """The mean level between two volumes."""
        if max_hm3 <= min_hm3:
            return self.height_at(min_hm3)
        inside = self.volume_hm3[(self.volume_hm3 > min_hm3) & (self.volume_hm3 < max_hm3)].tolist()
        volumes = [min_hm3, *inside, max_hm3]
        heights = [self.height_at(volume) for volume in volumes]
        pieces = zip(volumes, volumes[1:], heights, heights[1:], strict=False)
        total = sum_in_order((right - left) * (low + high) / 2.0 for left, right, low, high in pieces)
        return float(total / (max_hm3 - min_hm3))

    def area_at(self, volume_hm3: float) -> float:
        """The area; that of the end points outside of them."""
        return float(np.interp(volume_hm3, self.volume_hm3, self.area_km2))

    def area_slope_at(self, volume_hm3: float) -> float:
        """km2 per hm3 of the piece that holds a volume: at a point the piece above it, outside the outermost piece."""
        pieces = self.volume_hm3.size - 1
        if pieces < 1:
            return 0.0
        above = int(np.searchsorted(self.volume_hm3, volume_hm3, side="right"))
        left = min(max(above - 1, 0), pieces - 1)
        rise = self.area_km2[left + 1] - self.area_km2[left]
        return float(rise / (self.volume_hm3[left + 1] - self.volume_hm3[left]))


def geometry_by_hydro(table: Table | None) -> dict[int, ReservoirGeometry]:
    """The rows of system/hydro_geometry.parquet as geometries, by hydro id."""
    if table is None:
        return {}
    found = {}
    for hydro_id in np.unique(table["hydro_id"]):
        rows = table["hydro_id"] == hydro_id
        found[int(hydro_id)] = ReservoirGeometry(
            *(np.asarray(table[name][rows], dtype=np.float64) for name in ("volume_hm3", "height_m", "area_km2"))
        )
    return found
