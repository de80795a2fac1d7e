"""Files of an example case."""

from dataclasses import dataclass
from typing import Any

from generation.files import Files
from generation.horizon import Horizon
from generation.scenario_files import mean_inflow, scenario_files
from generation.system import System
from generation.system_files import system_files

# Shedding load costs more than any plant, a violated minimum release less, and inflow correction more than all.
DEFICIT_COSTS = (1500.0, 4000.0)
HYDRO_COSTS = {
    "spillage_cost": 0.1,
    "turbined_cost": 0.02,
    "diversion_cost": 0.1,
    "storage_violation_below_cost": 20000.0,
    "filling_target_violation_cost": 20000.0,
    "turbined_violation_below_cost": 500.0,
    "outflow_violation_below_cost": 500.0,
    "outflow_violation_above_cost": 500.0,
    "generation_violation_below_cost": 1000.0,
    "evaporation_violation_cost": 5000.0,
    "water_withdrawal_violation_cost": 5000.0,
    "inflow_nonnegativity_cost": 40000.0,
}


@dataclass(frozen=True, slots=True)
class Example:
    """A system, a horizon, and settings of training and simulation."""

    system: System
    horizon: Horizon
    forward_passes: int
    iterations: int
    simulated: int
    correlation: float = 0.0
    wetness: float = 1.0  # inflow of the months before the study, relative to their means

    def files(self) -> Files:
        """Return all files of the case, by path."""
        start_date = self.horizon.first_day(0).isoformat()
        return {
            "config.json": self._config(),
            "stages.json": self.horizon.document(has_memory=self._lags > 0),
            "initial_conditions.json": self._initial_conditions(),
            "penalties.json": _penalties(),
            **system_files(self.system, start_date, DEFICIT_COSTS),
            **scenario_files(self.system, self.horizon, self.correlation),
        }

    @property
    def _lags(self) -> int:
        return max(len(plant.inflow.memory) for plant in self.system.hydros)

    def _config(self) -> dict[str, Any]:
        return {
            "training": {
                "tree_seed": 42,
                "selection": {"method": "sampled", "forward_passes": self.forward_passes},
                "stopping_rules": [{"type": "iteration_limit", "limit": self.iterations}],
            },
            "simulation": {"enabled": True, "selection": {"method": "sampled", "num_scenarios": self.simulated}},
            "modeling": {"inflow_non_negativity": {"method": "penalty"}},
        }

    def _initial_conditions(self) -> dict[str, Any]:
        plants = list(enumerate(self.system.hydros))
        storage = [{"hydro_id": index, "value_hm3": plant.initial_storage_hm3} for index, plant in plants]
        observed = [
            {
                "hydro_id": index,
                "start_date": self.horizon.first_day(-lag).isoformat(),
                "end_date": self.horizon.first_day(1 - lag).isoformat(),
                "value_m3s": round(self.wetness * mean_inflow(plant, -lag), 2),
            }
            for index, plant in plants
            for lag in range(1, self._lags + 1)
        ]
        return {"storage": storage, "filling_storage": [], "recent_observations": observed}


def _penalties() -> dict[str, Any]:
    return {
        "bus": {"deficit_segments": [{"depth_mw": None, "cost": DEFICIT_COSTS[1]}], "excess_cost": 1.0},
        "line": {"exchange_cost": 0.2},
        "hydro": HYDRO_COSTS,
        "non_controllable_source": {"curtailment_cost": 0.5},
    }
