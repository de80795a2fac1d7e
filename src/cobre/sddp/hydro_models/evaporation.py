"""Evaporation as a straight line in the volume."""

from calendar import monthrange

from cobre.core.hydro import Hydro
from cobre.core.temporal import Stage
from cobre.records import dataclass
from cobre.sddp.hydro_models.geometry import ReservoirGeometry


@dataclass(frozen=True, slots=True)
class EvaporationLine:
    """Evaporation in m3/s as a line in the stored volume: k0 + kv * volume (hm3)."""

    k0: float
    kv: float


NONE = EvaporationLine(0.0, 0.0)


def evaporation_line(hydro: Hydro, geometry: ReservoirGeometry | None, stage: Stage) -> EvaporationLine:
    """The line of a plant in a stage: the coefficient and the hours are those of the month in which the stage starts.

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
    """Hours of the month in which a stage starts."""
    return 24.0 * monthrange(stage.start_date.year, stage.start_date.month)[1]


def _reference_volume(hydro: Hydro, month: int) -> float:
    evaporation = hydro.evaporation
    if evaporation is not None and evaporation.reference_volumes_hm3 is not None:
        return evaporation.reference_volumes_hm3[month]
    return (hydro.reservoir.min_storage_hm3 + hydro.reservoir.max_storage_hm3) / 2.0
