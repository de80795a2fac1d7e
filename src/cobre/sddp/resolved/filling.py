"""Plants whose dead volume is filled for the first time."""

import numpy as np

from cobre.core.arrays import Flags, Floats, sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Hydro
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.sddp.resolved.declared import numbers
from cobre.sddp.resolved.override_rows import OverrideRows


class FillingPlan:
    """Who fills when, and how far it should have come.

    A plant fills from the start of its filling until its entry. At the end of a stage it should hold what the least
    rate, over the stages that are left, would raise to the dead volume.
    """

    def __init__(self, case: Case, bounds: OverrideRows) -> None:
        self._hydros = case.system.hydros
        self._stages = case.horizon.stages
        self._bounds = bounds

    def is_filling(self, stage_id: int) -> Flags:
        """N: plants whose dead volume is being filled in a stage."""
        return np.array([_fills(hydro, stage_id) for hydro in self._hydros], dtype=np.bool_)

    def was_filled(self, stage_id: int) -> Flags:
        """Plants in service that were filled before."""
        return np.array([_was_filled(hydro, stage_id) for hydro in self._hydros], dtype=np.bool_)

    def target_hm3(self, stage_id: int) -> Floats:
        """N: the volume to be reached by the end of a stage, hm3; NaN for plants that do not fill."""
        targets = [self._target(position, stage_id) for position in range(len(self._hydros))]
        return np.array(targets, dtype=np.float64)

    def _target(self, position: int, stage_id: int) -> float:
        hydro = self._hydros[position]
        if not _fills(hydro, stage_id):
            return float("nan")
        later = [stage for stage in self._stages if stage.id > stage_id and _fills(hydro, stage.id)]
        last_id = later[-1].id if later else stage_id
        dead_hm3 = self._stage_value(position, last_id, "min_storage_hm3", hydro.reservoir.min_storage_hm3)
        still_hm3 = sum_in_order(HM3_PER_M3S_HOUR * stage.hours * self._rate(position, stage.id) for stage in later)
        return max(0.0, dead_hm3 - still_hm3)

    def _rate(self, position: int, stage_id: int) -> float:
        filling = self._hydros[position].filling
        declared = filling.filling_min_rate_m3s if filling else 0.0
        return self._stage_value(position, stage_id, "filling_min_rate_m3s", declared)

    def _stage_value(self, position: int, stage_id: int, name: str, declared: float) -> float:
        values = numbers(self._hydros, lambda _: declared)
        return float(self._bounds.by_stage(stage_id, name, values)[position])


def _fills(hydro: Hydro, stage_id: int) -> bool:
    if hydro.filling is None or hydro.entry_stage_id is None:
        return False
    return hydro.filling.start_stage_id <= stage_id < hydro.entry_stage_id


def _was_filled(hydro: Hydro, stage_id: int) -> bool:
    if hydro.filling is None or hydro.entry_stage_id is None or stage_id < hydro.entry_stage_id:
        return False
    return hydro.exit_stage_id is None or stage_id < hydro.exit_stage_id
