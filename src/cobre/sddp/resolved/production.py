"""How much power a plant makes of its water in a stage: one rate, or planes."""

from collections.abc import Mapping
from math import fsum

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.hydro import Hydro
from cobre.core.production import FphaConfig, ProductionChoice
from cobre.core.temporal import Stage
from cobre.sddp.hydro_models.energy_productivity import (
    EQUIVALENT,
    NoProductivityError,
    ProductivityTable,
    reference_volume_hm3,
)
from cobre.sddp.hydro_models.fpha_fitting import Fit, fit_production
from cobre.sddp.hydro_models.geometry import ReservoirGeometry
from cobre.sddp.hydro_models.production_function import ProductionFunction
from cobre.sddp.hydro_models.tailrace_families import tailrace_families
from cobre.sddp.resolved.declared import ServiceTimes

PRECOMPUTED = FphaConfig("precomputed")


class ProductionResolver:
    """Productivities and planes, stage by stage."""

    def __init__(self, case: Case, geometry: Mapping[int, ReservoirGeometry]) -> None:
        self._hydros = case.system.hydros
        self._models = case.production
        self._geometry = geometry
        self._families = tailrace_families(case.production.tailrace_curves)
        self._rules = case.format_version
        self._mean_inflow_m3s = _mean_inflows(case.scenarios.inflow_history)
        self._service = ServiceTimes(self._hydros)
        self._table = ProductivityTable(case.production.energy_productivity)
        self._by_id = {hydro.id: hydro for hydro in self._hydros}
        self._choices: dict[int, dict[int, ProductionChoice]] = {}
        self._levels_m: dict[tuple[int, float], float] = {}
        self._fitted: dict[tuple[int, FphaConfig, float | None], Fit] = {}
        self._fitted_to: dict[tuple[int, int, float | None], Fit] = {}  # by the identity of a choice, which is quicker

    def productivity(self, stage: Stage) -> Floats:
        """MW per m3/s; NaN for plants with planes, 0 for plants that are out of service."""
        serving = self._service.at(stage.id).tolist()
        pairs = zip(self._hydros, serving, strict=True)
        return np.array(
            [self._productivity(hydro, stage) if serves else 0.0 for hydro, serves in pairs], dtype=np.float64
        )

    def planes(self, stage: Stage) -> tuple[Floats | None, ...]:
        """Rows of (gamma_0 with kappa, gamma_v, gamma_q, gamma_s); None for plants with one rate or out of service."""
        serving = self._service.at(stage.id).tolist()
        pairs = zip(self._hydros, serving, strict=True)
        return tuple(self._planes(hydro, stage) if serves else None for hydro, serves in pairs)

    def _productivity(self, hydro: Hydro, stage: Stage) -> float:
        choice = self._choice(hydro, stage)
        if choice.model == "fpha":
            return float("nan")
        if choice.productivity_mw_per_m3s is not None:
            return choice.productivity_mw_per_m3s
        value = self._table.value(EQUIVALENT, hydro.id, stage.id)
        if value is None:
            raise NoProductivityError(
                f"no productivity is given for hydro {hydro.id} ({hydro.name}) in stage {stage.id}"
            )
        return value

    def _choice(self, hydro: Hydro, stage: Stage) -> ProductionChoice:
        if stage.id not in self._choices:
            self._choices[stage.id] = {plant.id: self._models.choice_for(plant, stage) for plant in self._hydros}
        return self._choices[stage.id][hydro.id]

    def _planes(self, hydro: Hydro, stage: Stage) -> Floats | None:
        choice = self._choice(hydro, stage)
        if choice.model != "fpha":
            return None
        fit = self.fit(hydro, stage)
        return _given_planes(self._models.hyperplanes, hydro, stage) if fit is None else fit.planes

    def fit(self, hydro: Hydro, stage: Stage) -> Fit | None:
        """Planes of a plant that are fitted to its geometry, with the grid; None for any other model."""
        choice = self._choice(hydro, stage)
        config = choice.fpha_config or PRECOMPUTED
        if choice.model != "fpha" or config.source == "precomputed":
            return None
        families = self._families.get(hydro.id)
        level_m = None if families is None else self._downstream_level_m(hydro, stage)
        quick_key = (hydro.id, id(choice), level_m)
        if quick_key not in self._fitted_to:
            self._fitted_to[quick_key] = self._fit_to(hydro, config, level_m)
        return self._fitted_to[quick_key]

    def _fit_to(self, hydro: Hydro, config: FphaConfig, level_m: float | None) -> Fit:
        families = self._families.get(hydro.id)
        key = (hydro.id, config, level_m)
        if key not in self._fitted:
            tailrace = None if families is None else families.at(level_m)
            mean_inflow_m3s = self._mean_inflow_m3s.get(hydro.id)
            function = ProductionFunction(hydro, self._geometry[hydro.id], tailrace, mean_inflow_m3s)
            self._fitted[key] = fit_production(function, config, self._models.plane_reduction, self._rules)
        return self._fitted[key]

    def _downstream_level_m(self, hydro: Hydro, stage: Stage) -> float | None:
        """Level of the next reservoir downstream at its reference volume; None where there is none or it is unknown."""
        below = None if hydro.downstream_id is None else self._by_id.get(hydro.downstream_id)
        if below is None or below.id not in self._geometry:
            return None
        key = (below.id, reference_volume_hm3(self._choice(below, stage), below))
        if key not in self._levels_m:
            self._levels_m[key] = self._geometry[below.id].height_at(key[1])
        return self._levels_m[key]


def _mean_inflows(history: Table | None) -> dict[int, float]:
    """The mean of the rows of inflow_history.parquet by hydro id, m3/s; every row counts once, whatever its length."""
    if history is None:
        return {}
    order = np.argsort(history["hydro_id"], kind="stable")
    ids, first = np.unique(history["hydro_id"][order], return_index=True)
    parts = np.split(history["value_m3s"][order], first[1:])
    return {int(id_): fsum(part) / len(part) for id_, part in zip(ids, parts, strict=True)}


def _given_planes(table: Table | None, hydro: Hydro, stage: Stage) -> Floats:
    """Planes of the stage, or those of all stages."""
    if table is None:
        raise NoProductivityError(f"no planes are given for hydro {hydro.id} ({hydro.name})")
    for wanted in (stage.id, ABSENT_ID):
        rows = (table["hydro_id"] == hydro.id) & (table["stage_id"] == wanted)
        if rows.any():
            kappa = np.where(np.isnan(table["kappa"][rows]), 1.0, table["kappa"][rows])
            slopes = [table[name][rows] for name in ("gamma_v", "gamma_q", "gamma_s")]
            return np.column_stack([table["gamma_0"][rows] * kappa, *slopes])
    raise NoProductivityError(f"no planes are given for hydro {hydro.id} ({hydro.name}) in stage {stage.id}")
