"""Prices of hydro plants: penalties.json, then the plant's own, then those of the stage."""

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.sddp.resolved.declared import positions_by_id
from cobre.sddp.resolved.override_rows import OverrideRows

PLAIN = (
    "spillage_cost",
    "turbined_cost",
    "diversion_cost",
    "storage_violation_below_cost",
    "filling_target_violation_cost",
    "turbined_violation_below_cost",
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "generation_violation_below_cost",
    "inflow_nonnegativity_cost",
)
# Prices with a direction, and the price of both directions that holds where none is given.
DIRECTED: Mapping[str, str] = {
    "evaporation_violation_pos_cost": "evaporation_violation_cost",
    "evaporation_violation_neg_cost": "evaporation_violation_cost",
    "water_withdrawal_violation_pos_cost": "water_withdrawal_violation_cost",
    "water_withdrawal_violation_neg_cost": "water_withdrawal_violation_cost",
}


class HydroCostResolver:
    """Costs and penalties of hydro plants by stage, from declarations and override tables."""

    def __init__(self, case: Case) -> None:
        hydros = case.system.hydros
        order = positions_by_id(hydro.id for hydro in hydros)
        self._prices = OverrideRows(case.overrides.penalty_overrides_hydro, ("hydro_id",), order)
        self._shared = asdict(case.penalties.hydro)
        self._own = [asdict(hydro.penalties) if hydro.penalties else {} for hydro in hydros]
        self._plain = {name: self._declared(name) for name in PLAIN}
        self._both = {name: self._of_both_directions(name, both) for name, both in DIRECTED.items()}

    def of(self, stage_id: int) -> dict[str, Floats]:
        """Every price of every plant, by name."""
        plain = {name: self._prices.by_stage(stage_id, name, declared) for name, declared in self._plain.items()}
        return plain | {name: self._directed(stage_id, name, both) for name, both in DIRECTED.items()}

    def _declared(self, name: str) -> Floats:
        values = [own.get(name) for own in self._own]
        return np.array([self._shared[name] if value is None else value for value in values], dtype=np.float64)

    def _directed(self, stage_id: int, name: str, both: str) -> Floats:
        """The nearest price wins: a stage's or a plant's price of both directions beats one direction's further out."""
        return self._prices.by_stage(stage_id, name, self._prices.by_stage(stage_id, both, self._both[name]))

    def _of_both_directions(self, name: str, both: str) -> Floats:
        own = np.array([_or_nan(prices.get(both)) for prices in self._own], dtype=np.float64)
        return np.where(np.isnan(own), self._shared_or(name, both), own)

    def _shared_or(self, name: str, both: str) -> Floats:
        shared = self._shared[name]
        return np.full(len(self._own), self._shared[both] if shared is None else shared, dtype=np.float64)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
