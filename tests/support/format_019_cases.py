"""Three months of one plant with a memory, in either format, and the results of both Rust programs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from small_cases import machines, months, penalties, write_files

SCHEMA = "https://raw.githubusercontent.com/{}/refs/heads/main/schemas/config.schema.json"
OWNERS = {"0.18": "cobre-rs/cobre", "0.19": "ons-ccee-epe/novomodelo"}
MACHINES = machines((0.0, 200.0), (0.0, 200.0))
START = {"operational_start_date": "2024-01-01"}
NOISE = (-0.5, -3.0, 0.0)
NO_NOISE = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class PlantCase:
    """Settings that differ between cases. penalty: of negative inflows. hydro: fields of the plant that are replaced.

    limits_hm3: of the storage at the end of the stage `limited`, where these differ from the plant's. upstream: fields
    of a second plant, whose noise is `upstream_noise` in the first stage. storage_price: of a minimum that is violated,
    $/hm3. blocks: chronological where there are several.
    """

    version: str = "0.19"
    method: str = "penalty"
    penalty: float = 1000.0
    noise: tuple[float, ...] = NO_NOISE
    hydro: dict[str, Any] = field(default_factory=dict)
    minimum: dict[str, float] = field(default_factory=dict)
    constraint: dict[str, Any] | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    is_filling: bool = False
    initial_hm3: float = 300.0
    limits_hm3: tuple[float, float] | None = None
    limited: int = 0
    upstream: dict[str, Any] | None = None
    upstream_noise: float = -3.0
    storage_price: float = 10000.0
    blocks: int = 1

    def write(self, folder: Path) -> Path:
        """Write all files of the case into the folder."""
        return write_files(folder, self._documents(), self._tables())

    def _documents(self) -> dict[str, Any]:
        machines = MACHINES | self.minimum
        hydro = {
            "id": 0,
            "name": "H0",
            **START,
            "downstream_id": None,
            "reservoir": {"min_storage_hm3": 0.0, "max_storage_hm3": 1000.0},
            "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": 200.0},
            "generation": {"model": "constant_productivity", **machines},
            "unit_groups": [{"id": 0, "name": "H0", "bus_id": 0, **machines}],
            "penalties": {"turbined_cost": 0.0},
        } | self.hydro
        hydros = [hydro]
        if self.upstream is not None:
            group = {"id": 0, "name": "UP", "bus_id": 0, **machines}
            hydros.append(hydro | {"id": 1, "name": "UP", "downstream_id": 0, "unit_groups": [group]} | self.upstream)
        thermal = {"id": 0, "name": "T0", **START, "bus_id": 0, "cost_per_mwh": 50.0}
        model = {"start_stage_id": 0, "model": "constant_productivity", "productivity_mw_per_m3s": 1.0}
        found = {
            "config.json": self._config(),
            "stages.json": _stages(self.blocks),
            "penalties.json": penalties(
                {
                    "spillage_cost": 0.01,
                    "diversion_cost": 0.01,
                    "turbined_cost": 0.01,
                    "inflow_nonnegativity_cost": self.penalty,
                    "storage_violation_below_cost": self.storage_price,
                },
                others=10000.0,
                excess=0.01,
                line=0.01,
                source=0.005,
            ),
            "initial_conditions.json": self._start(),
            "system/buses.json": {"buses": [{"id": 0, "name": "B0", **START}]},
            "system/lines.json": {"lines": []},
            "system/thermals.json": {"thermals": [thermal | {"generation": {"min_mw": 0.0, "max_mw": 300.0}}]},
            "system/hydros.json": {"hydros": hydros},
            "system/hydro_production_models.json": {
                "production_models": [
                    {"hydro_id": plant["id"], "selection_mode": "stage_ranges", "stage_ranges": [model]}
                    for plant in hydros
                ]
            },
        }
        if self.constraint is not None:
            found["constraints/generic_constraints.json"] = {"constraints": [{"id": 0, "name": "c"} | self.constraint]}
        if self.parameters:
            found["constraints/generic_parameters.json"] = {"scalar_parameters": list(self.parameters)}
        return found

    def _config(self) -> dict[str, Any]:
        return {
            "$schema": SCHEMA.format(OWNERS[self.version]),
            "training": {
                "selection": {"method": "sampled", "forward_passes": 1},
                "stopping_rules": [{"type": "iteration_limit", "limit": 4}],
                "scenario_source": {"seed": 1, "openings": {"source": "file"}},
            },
            "modeling": {"inflow_non_negativity": {"method": self.method}},
        }

    def _start(self) -> dict[str, Any]:
        volume = [{"hydro_id": 0, "value_hm3": 0.0 if self.is_filling else self.initial_hm3}]
        window = {"start_date": "2023-12-01", "end_date": "2024-01-01", "value_m3s": 20.0}
        if self.upstream is not None:
            volume.append({"hydro_id": 1, "value_hm3": 10.0})
        return {
            "storage": [] if self.is_filling else volume,
            "filling_storage": volume if self.is_filling else [],
            "recent_observations": [{"hydro_id": hydro, **window} for hydro in self._plants],
        }

    @property
    def _plants(self) -> list[int]:
        return [0] if self.upstream is None else [0, 1]

    def _tables(self) -> dict[str, Any]:
        count, three = len(self._plants), [0, 1, 2]
        upstream = (self.upstream_noise, 0.0, 0.0)
        noise = [value for pair in zip(self.noise, upstream, strict=True) for value in pair[:count]]
        found = {
            "scenarios/inflow_seasonal_stats": {
                "hydro_id": [hydro for hydro in self._plants for _ in range(4)],
                "stage_id": [-1, *three] * count,
                "mean_m3s": [50.0] * 4 * count,
                "std_m3s": [40.0] * 4 * count,
            },
            "scenarios/inflow_ar_coefficients": {
                "hydro_id": [hydro for hydro in self._plants for _ in three],
                "stage_id": three * count,
                "lag": [1] * 3 * count,
                "coefficient": [0.5] * 3 * count,
                "residual_std_ratio": [1.0] * 3 * count,
            },
            "scenarios/load_seasonal_stats": {
                "bus_id": [0] * 3,
                "stage_id": [0, 1, 2],
                "mean_mw": [250.0] * 3,
                "std_mw": [0.0] * 3,
            },
            "scenarios/noise_openings": {
                "stage_id": [stage for stage in three for _ in self._plants],
                "opening_index": [0] * 3 * count,
                "entity_index": self._plants * 3,
                "value": noise,
            },
        }
        if self.constraint is not None:
            found["constraints/generic_constraint_bounds"] = {
                "constraint_id": [0],
                "stage_id": [0],
                "block_id": [None],
                "bound_lower": [0.0],
                "bound_upper": [None],
            }
        if self.limits_hm3 is not None:
            low, high = self.limits_hm3
            found["constraints/hydro_bounds"] = {
                "hydro_id": [0],
                "stage_id": [self.limited],
                "min_storage_hm3": [low],
                "max_storage_hm3": [high],
            }
        return found


def _stages(blocks: int) -> dict[str, Any]:
    days = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"]
    stages = [
        {
            "id": number,
            "start_date": days[number],
            "end_date": days[number + 1],
            "season_id": number,
            "block_mode": "parallel" if blocks == 1 else "chronological",
            "blocks": [{"id": block, "name": f"b{block}", "hours": 730 / blocks} for block in range(blocks)],
            "state_variables": {"storage": True, "inflow_lags": True},
            "num_openings": 1,
        }
        for number in range(3)
    ]
    before = {"id": -1, "start_date": "2023-12-01", "end_date": "2024-01-01", "season_id": 11}
    return {
        "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.0},
        "stages": stages,
        "pre_study_stages": [before],
        "season_definitions": months(),
    }


TRUNCATED = {
    (version, method, penalty): PlantCase(version, method, penalty, NOISE)
    for version in ("0.18", "0.19")
    for method, penalty in (("truncation_with_penalty", 1.0), ("truncation_with_penalty", 1e5), ("truncation", 1.0))
}
FILLING = {
    "entry_stage_id": 1,
    "filling": {"start_stage_id": 0, "filling_min_rate_m3s": 60.0},
    "reservoir": {"min_storage_hm3": 50.0, "max_storage_hm3": 1000.0},
}
AT_REST = {
    "outflow": PlantCase(hydro={"entry_stage_id": 1, "outflow": {"min_outflow_m3s": 5.0, "max_outflow_m3s": 200.0}}),
    "turbined": PlantCase(hydro={"entry_stage_id": 1}, minimum={"min_turbined_m3s": 4.0}),
    "generation": PlantCase(hydro={"entry_stage_id": 1}, minimum={"min_generation_mw": 4.0}),
    "filling": PlantCase(hydro=FILLING, minimum={"min_turbined_m3s": 4.0}, is_filling=True),
}


def constrained(expression: str, basis: str = "per_unit", *parameters: dict[str, Any]) -> PlantCase:
    """Return a case with one soft constraint in its first stage."""
    slack = {"enabled": True, "penalty": 100.0, "penalty_basis": basis}
    return PlantCase(constraint={"expression": expression, "slack": slack}, parameters=parameters)


K = {"id": 0, "name": "k", "kind": "constant", "value": 4.0}
E = {"id": 1, "name": "e", "kind": "expression", "expression": "(@k * 300 + 3 - 3) / (@k - 2)"}
CONSTRAINED = {
    "volume by hour": constrained("hydro_storage(0) >= 600", "per_hour"),
    "volume once": constrained("hydro_storage(0) >= 600"),
    "flow by hour": constrained("hydro_turbined(0) >= 600", "per_hour"),
    "flow once": constrained("hydro_turbined(0) >= 600"),
    "arithmetic": constrained("hydro_storage(0) * 3 / (@k - 1) + 10 >= (@k + 1) * 122", "per_unit", K),
    "expression": constrained("hydro_storage(0) >= @e", "per_unit", K, E),
}
STARTING = {
    (version, name): PlantCase(version, initial_hm3=volume, limits_hm3=limits)
    for version in ("0.18", "0.19")
    for name, volume, limits in (("above", 300.0, (0.0, 250.0)), ("below", 100.0, (200.0, 1000.0)))
}
NOT_YET = {"entry_stage_id": 2, "reservoir": {"min_storage_hm3": 10.0, "max_storage_hm3": 10.0}}
CHEAP = NOT_YET | {"penalties": {"turbined_cost": 0.0, "inflow_nonnegativity_cost": 1.0}}
PASSING = {
    (version, method, name): PlantCase(version, method, initial_hm3=volume, upstream=upstream, upstream_noise=noise)
    for version in ("0.18", "0.19")
    for method, name, upstream, noise, volume in (
        ("truncation_with_penalty", "dear", NOT_YET, -3.0, 300.0),
        ("truncation_with_penalty", "cheap", CHEAP, -3.0, 300.0),
        ("truncation_with_penalty", "dry", NOT_YET, -5.0, 20.0),
        ("truncation", "dear", NOT_YET, -3.0, 300.0),
        ("penalty", "cheap", CHEAP, -3.0, 300.0),
    )
}
# The plant starts with 100 hm3, and the only opening brings 91.98 hm3, 45.99 hm3 in the first of two blocks.
REACHED = {
    (blocks, limit): PlantCase(
        method="truncation_with_penalty", initial_hm3=100.0, limits_hm3=(limit, 1000.0), blocks=blocks
    )
    for blocks, limit in ((1, 180.0), (1, 191.9), (2, 140.0))
}
EVERYTHING = {
    **{f"truncated {key}": case for key, case in TRUNCATED.items() if key[0] == "0.19"},
    **{f"at rest {key}": case for key, case in AT_REST.items()},
    **{f"constrained {key}": case for key, case in CONSTRAINED.items()},
    **{f"starting {key}": case for key, case in STARTING.items() if key[0] == "0.19"},
    **{f"passing {key}": case for key, case in PASSING.items() if key[0] == "0.19"},
    **{f"reached {key}": case for key, case in REACHED.items()},
}
