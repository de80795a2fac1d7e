"""Numbers of the horizon, of plants and of prices that make no sense."""

import pytest
from validation_case import apply_all, assert_semantic_error, put, put_columns

STAGES = "stages.json:stages"
GRAPH = "stages.json:policy_graph"
HYDROS = "system/hydros.json:hydros"
PENALTIES = "penalties.json"


HORIZON = {
    "end before start": (
        put(f"{STAGES}.1.end_date", "2024-01-15"),
        "stage 1, end_date: is 2024-01-15, not after start_date",
    ),
    "not in order": (
        put(f"{STAGES}.0.end_date", "2025-01-15"),
        "stage 1, end_date: is 2024-03-01, but stage 0 ends",
    ),
    "late pre-study": (
        put("stages.json:pre_study_stages.0.end_date", "2024-01-05"),
        "pre-study stage -1, end_date",
    ),
    "probability": (
        put(f"{GRAPH}.transitions.0.probability", 0.5),
        "leaving stage 0 sum to 0.5 (expected a sum of 1)",
    ),
    "backwards": (
        put(f"{GRAPH}.transitions", [{"source_id": 1, "target_id": 0, "probability": 1.0}]),
        "transition 1 -> 0, target_id: does not lead to the next stage",
    ),
    "rate": (
        put(f"{GRAPH}.annual_discount_rate", -0.1),
        "policy_graph.annual_discount_rate: is -0.1 (expected at least 0)",
    ),
    "stage rate": (
        put(f"{STAGES}.2.annual_discount_rate_override", -1.0),
        "stage 2, annual_discount_rate_override: is -1",
    ),
    "alpha": (
        put(f"{STAGES}.0.risk_measure", {"cvar": {"alpha": 0.0, "lambda": 0.5}}),
        "risk_measure.cvar.alpha: is 0",
    ),
    "lambda": (
        put(f"{STAGES}.0.risk_measure", {"cvar": {"alpha": 0.5, "lambda": 1.5}}),
        "risk_measure.cvar.lambda: is 1.5",
    ),
}


PLANTS = {
    "circle": (put(f"{HYDROS}.2.downstream_id", 0), "the cascade contains a cycle: 0 -> 1 -> 2 -> 0"),
    "circle by diversion": (
        put(f"{HYDROS}.2.diversion", {"downstream_id": 1, "max_flow_m3s": 1.0}),
        "hydros 1, 2, downstream_id: the cascade contains a cycle: 1 -> 2 -> 1",
    ),
    "own water": (put(f"{HYDROS}.2.downstream_id", 2), "the cascade contains a cycle: 2 -> 2"),
    "pump": (
        put("system/pumping_stations.json:pumping_stations.0.destination_hydro_id", 2),
        "the same reservoir",
    ),
    "storage": (
        put(f"{HYDROS}.0.reservoir.min_storage_hm3", 200.0),
        "reservoir.min_storage_hm3: is 200, above reservoir.max",
    ),
    "negative storage": (
        put(f"{HYDROS}.0.reservoir.min_storage_hm3", -1.0),
        "reservoir.min_storage_hm3: is -1 (expected at least 0)",
    ),
    "negative maximum": (
        put(f"{HYDROS}.0.reservoir.max_storage_hm3", -90.0),
        "reservoir.max_storage_hm3: is -90 (expected at least 0)",
    ),
    "outflow": (
        put(f"{HYDROS}.0.outflow", {"min_outflow_m3s": 5.0, "max_outflow_m3s": 4.0}),
        "outflow.min_outflow_m3s: is 5, above",
    ),
    "turbined": (
        put(f"{HYDROS}.0.generation.min_turbined_m3s", 60.0),
        "generation.min_turbined_m3s: is 60, above",
    ),
    "group": (
        put(f"{HYDROS}.0.unit_groups.0.min_generation_mw", 21.0),
        "unit_groups (id 0).min_generation_mw: is 21, above",
    ),
    "group maxima": (
        put(f"{HYDROS}.0.unit_groups.0.max_turbined_m3s", 31.0),
        "unit_groups.max_turbined_m3s: the groups sum to 51, above the plant's own generation.max_turbined",
    ),
    "group minima": (
        put(f"{HYDROS}.0.generation.min_generation_mw", 3.0),
        "unit_groups.min_generation_mw: the groups sum to 0, below",
    ),
    "thermal": (
        put("system/thermals.json:thermals.0.generation.min_mw", 90.0),
        "generation.min_mw: is 90, above generation.max_mw",
    ),
    "fuel": (put("system/thermals.json:thermals.0.cost_per_mwh", -1.0), "cost_per_mwh: is -1"),
    "line": (put("system/lines.json:lines.0.capacity.direct_mw", -5.0), "capacity.direct_mw: is -5"),
    "losses": (
        put("system/lines.json:lines.0.losses_percent", 100.0),
        "losses_percent: is 100 (expected a number below 100)",
    ),
    "loop": (put("system/lines.json:lines.0.target_bus_id", 0), "target_bus_id: is 0, the same as source_bus_id"),
    "contract": (
        put("system/energy_contracts.json:contracts.0.limits.min_mw", 6.0),
        "limits.min_mw: is 6, above limits.max_mw",
    ),
    "pump flow": (
        put("system/pumping_stations.json:pumping_stations.0.flow.max_m3s", -1.0),
        "flow.max_m3s: is -1 (expected at least 0)",
    ),
    "entry": (
        apply_all(
            put("system/thermals.json:thermals.0.entry_stage_id", 2),
            put("system/thermals.json:thermals.0.exit_stage_id", 2),
        ),
        "thermal 0 (T), exit_stage_id: is 2, not after entry_stage_id",
    ),
    "efficiency": (put(f"{HYDROS}.2.efficiency.value", 1.2), "efficiency.value: is 1.2"),
    "head losses": (put(f"{HYDROS}.2.hydraulic_losses.value", 1.0), "hydraulic_losses.value: is 1"),
    "tailrace": (
        put(f"{HYDROS}.2.tailrace.points.1.outflow_m3s", 0.0),
        "tailrace.points: outflow_m3s does not increase",
    ),
    "diversion": (put(f"{HYDROS}.0.diversion.max_flow_m3s", -1.0), "diversion.max_flow_m3s: is -1"),
}


PRICES = {
    "zero": (
        put(f"{PENALTIES}:hydro.spillage_cost", 0.0),
        "hydro.spillage_cost: is 0 (expected a number above 0)",
    ),
    "negative turbined": (
        put(f"{PENALTIES}:hydro.turbined_cost", -0.1),
        "hydro.turbined_cost: is -0.1 (expected at least 0)",
    ),
    "bus": (put(f"{PENALTIES}:bus.excess_cost", 0.0), "bus.excess_cost: is 0"),
    "own price": (
        put(f"{HYDROS}.0.penalties.spillage_cost", -1.0),
        "hydro 0 (H0), penalties.spillage_cost: is -1 (expected at least 0)",
    ),
    "line": (put("system/lines.json:lines.0.exchange_cost", -1.0), "line 0 (AB), exchange_cost: is -1"),
    "stage": (
        put_columns("penalty_overrides_bus", excess_cost=[0.0]),
        "stage 0, excess_cost: is 0 (expected a number above 0)",
    ),
    "no tier": (put(f"{PENALTIES}:bus.deficit_segments", []), "bus.deficit_segments: there is none"),
    "last tier": (
        put(f"{PENALTIES}:bus.deficit_segments.1.depth_mw", 9.0),
        "bus.deficit_segments[1].depth_mw: the last segment is 9 MW deep",
    ),
    "tier in between": (
        put(f"{PENALTIES}:bus.deficit_segments.0.depth_mw", None),
        "bus.deficit_segments[0].depth_mw: is null",
    ),
    "falling tiers": (
        put(f"{PENALTIES}:bus.deficit_segments.0.cost", 1000.0),
        "deficit_segments[1].cost: is 1000, not above",
    ),
    "tier of a bus": (
        put("system/buses.json:buses.1.deficit_segments.0.depth_mw", 1.0),
        "bus 1 (B), deficit_segments[0].depth_mw",
    ),
}


OVERRIDES = {
    "above its maximum": (
        put_columns("hydro_bounds", min_turbined_m3s=[None, 46.0]),
        "hydro 0, stage 1, block 0, min_turbined_m3s: is 46, above",
    ),
    "against the declaration": (
        put_columns("thermal_bounds", max_generation_mw=[-0.0, None], min_generation_mw=[5.0, None]),
        "thermal 0, stage 0, min_generation_mw: is 5, above",
    ),
    "negative": (
        put_columns("line_bounds", direct_mw=[-1.0]),
        "line 0, stage 0, direct_mw: is -1 (expected at least 0)",
    ),
    "raised": (
        put_columns("hydro_bounds", max_turbined_m3s=[60.0, None]),
        "hydro 0, stage 1, max_turbined_m3s: is 60, above the declared 50",
    ),
    "group raised": (
        put_columns("hydro_unit_group_bounds", max_turbined_m3s=[25.0]),
        "hydro 0, hydro_unit_group 1, stage 2, max_turbined_m3s: is 25, above the declared 20",
    ),
    "stage value for a block": (
        put_columns("hydro_bounds", max_storage_hm3=[None, 90.0]),
        "hydro 0, stage 1, block 0, max_storage_hm3: is given for one block",
    ),
    "fuel price for a block": (
        put_columns("thermal_bounds", cost_per_mwh=[None, 9.0]),
        "cost_per_mwh: is given for one block",
    ),
    "no diversion": (
        put_columns("hydro_bounds", hydro_id=[1, 1], min_diversion_m3s=[0.0, 0.5]),
        "hydro 1, stage 1, block 0, min_diversion_m3s: is 0.5, but the plant has no `diversion`",
    ),
    "no filling": (
        put_columns("hydro_bounds", filling_min_rate_m3s=[1.0, None]),
        "filling_min_rate_m3s: is 1, but the plant has no `filling`",
    ),
}

CORRUPTED = {
    f"{group}: {name}": corrupted
    for group, members in {
        "horizon": HORIZON,
        "plants": PLANTS,
        "prices": PRICES,
        "overrides": OVERRIDES,
    }.items()
    for name, corrupted in members.items()
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_invalid_system_values_are_reported(tmp_path, name):
    assert_semantic_error(tmp_path, *CORRUPTED[name])
