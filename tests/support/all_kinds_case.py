"""A case with three entities of every kind, all different, and any source of scenarios.

Entities have places 0, 1 and 2 in canonical order. Their ids are chosen freely: dates of operation keep the places.
"""

import random
from collections.abc import Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

from small_cases import machines, penalties, write_files

PLACES = range(3)
STAGES = range(3)
DAYS = [f"2024-0{month}-01" for month in range(1, 5)]
SOURCES: dict[str, dict[str, Any]] = {
    "generated": {},
    "openings": {"openings": {"source": "file"}},
    "out_of_sample": {name: {"scheme": "out_of_sample"} for name in ("inflow", "load", "ncs")},
    "external": {name: {"scheme": "external"} for name in ("inflow", "load", "ncs")},
    "historical": {"inflow": {"scheme": "historical"}},
    "estimated": {},
}
"""Scenario sources of config.json; `estimated`: inflow models from the history."""


def write_all_kinds(folder: Path, source: str, ids: Sequence[int] = (0, 1, 2)) -> Path:
    """Write the case. ids: of the entities of every kind at places 0, 1 and 2."""
    return write_files(folder, _documents(source, ids), _tables(source, ids))


def _entity(place: int, ids: Sequence[int], kind: str, **values: Any) -> dict[str, Any]:
    start = f"2020-01-0{place + 1}"
    return {"id": ids[place], "name": f"{kind} {place}", "operational_start_date": start, **values}


def _documents(source: str, ids: Sequence[int]) -> dict[str, Any]:
    def of(kind: str, make: Any) -> list[dict[str, Any]]:
        return [_entity(place, ids, kind, **make(place)) for place in PLACES]

    seasons = [{"id": month, "label": str(month), "month_start": month + 1} for month in range(12)]
    factors = [{"block_id": 0, "factor": 0.8}, {"block_id": 1, "factor": 1.2}]
    return {
        "config.json": {
            "training": {
                "selection": {"method": "sampled", "forward_passes": 2},
                "stopping_rules": [{"type": "iteration_limit", "limit": 3}],
                "scenario_source": {"seed": 3, **SOURCES[source]},
            },
            "simulation": {"enabled": True, "selection": {"method": "sampled", "num_scenarios": 4}},
            "modeling": {"inflow_non_negativity": {"method": "penalty"}},
            **({"estimation": {"max_order": 1}} if source == "estimated" else {}),
        },
        "stages.json": {
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.1},
            "stages": [_stage(stage) for stage in STAGES],
            "pre_study_stages": [{"id": -1, "start_date": "2023-12-01", "end_date": DAYS[0], "season_id": 11}],
            "season_definitions": {"cycle_type": "monthly", "seasons": seasons},
        },
        "initial_conditions.json": {
            "storage": [{"hydro_id": ids[place], "value_hm3": 30.0 + 15.0 * place} for place in PLACES],
            "filling_storage": [],
            "recent_observations": [
                {"hydro_id": ids[place], "start_date": "2023-12-01", "end_date": DAYS[0], "value_m3s": 15.0 + 4 * place}
                for place in PLACES
            ],
        },
        "penalties.json": penalties(
            {
                "spillage_cost": 0.1,
                "turbined_cost": 0.05,
                "diversion_cost": 0.1,
                "inflow_nonnegativity_cost": 500.0,
            },
            others=500.0,
            excess=1.0,
            line=0.1,
            source=0.1,
        ),
        "system/buses.json": {"buses": of("bus", lambda _: {})},
        "system/lines.json": {"lines": of("line", lambda place: _line(place, ids))},
        "system/thermals.json": {"thermals": of("thermal", lambda place: _thermal(place, ids))},
        "system/hydros.json": {"hydros": of("hydro", lambda place: _hydro(place, ids))},
        "system/non_controllable_sources.json": {
            "non_controllable_sources": of(
                "wind", lambda place: {"bus_id": ids[place], "max_generation_mw": 8.0 + 6.0 * place}
            )
        },
        "system/pumping_stations.json": {"pumping_stations": of("pump", lambda place: _pump(place, ids))},
        "system/energy_contracts.json": {"contracts": of("contract", lambda place: _contract(place, ids))},
        "system/hydro_production_models.json": {
            "production_models": [
                {"hydro_id": ids[place], "selection_mode": "stage_ranges", "stage_ranges": [_production(place)]}
                for place in PLACES
            ]
        },
        "scenarios/load_factors.json": {
            "load_factors": [{"bus_id": ids[1], "stage_id": stage, "block_factors": factors} for stage in STAGES]
        },
        "scenarios/non_controllable_factors.json": {
            "non_controllable_factors": [{"ncs_id": ids[2], "stage_id": 1, "block_factors": factors}]
        },
        "scenarios/correlation.json": {
            "method": "spectral",
            "profiles": {"default": {"correlation_groups": [_group(kind, ids) for kind in ("inflow", "load", "ncs")]}},
        },
        "constraints/generic_constraints.json": {
            "constraints": [
                _constraint(0, f"@k * hydro_turbined({ids[0]}) + hydro_turbined({ids[2]}) <= 40"),
                _constraint(1, f"thermal_generation({ids[1]}) - contract_import({ids[0]}) >= 1"),
            ]
        },
        "constraints/generic_parameters.json": {
            "scalar_parameters": [
                {"id": 0, "name": "k", "kind": "per_stage", "values": [[0, 1.0], [1, 2.0], [2, 1.5]]},
            ]
        },
    }


def _stage(stage: int) -> dict[str, Any]:
    days = (date.fromisoformat(DAYS[stage + 1]) - date.fromisoformat(DAYS[stage])).days
    return {
        "id": stage,
        "start_date": DAYS[stage],
        "end_date": DAYS[stage + 1],
        "season_id": stage,
        "blocks": [{"id": 0, "name": "light", "hours": 15.0 * days}, {"id": 1, "name": "heavy", "hours": 9.0 * days}],
        "num_openings": 3,
        "state_variables": {"storage": True, "inflow_lags": True},
    }


def _line(place: int, ids: Sequence[int]) -> dict[str, Any]:
    ends = {"source_bus_id": ids[place], "target_bus_id": ids[(place + 1) % 3]}
    return {**ends, "capacity": {"direct_mw": 6.0 + 3.0 * place, "reverse_mw": 9.0 - 2.0 * place}}


def _thermal(place: int, ids: Sequence[int]) -> dict[str, Any]:
    limits = {"min_mw": 0.0, "max_mw": 15.0 + 6.0 * place}
    return {"bus_id": ids[place], "cost_per_mwh": 35.0 + 25.0 * place, "generation": limits}


def _hydro(place: int, ids: Sequence[int]) -> dict[str, Any]:
    groups = [
        {"id": 0, "name": "a", "bus_id": ids[place], **machines((0.0, 20.0), (0.0, 20.0 + place))},
        {"id": 1, "name": "b", "bus_id": ids[(place + 1) % 3], **machines((0.0, 12.0), (0.0, 15.0 - place))},
    ]
    return {
        "downstream_id": None if place == 2 else ids[place + 1],
        "reservoir": {"min_storage_hm3": 5.0, "max_storage_hm3": 70.0 + 30.0 * place},
        "outflow": {"min_outflow_m3s": 1.0 + place, "max_outflow_m3s": None},
        "generation": {
            "model": "fpha" if place == 1 else "constant_productivity",
            **machines((0.0, 32.0), (0.0, 35.0)),
        },
        "unit_groups": groups,
    }


def _pump(place: int, ids: Sequence[int]) -> dict[str, Any]:
    ends = {"source_hydro_id": ids[(place + 1) % 3], "destination_hydro_id": ids[place]}
    flow = {"min_m3s": 0.0, "max_m3s": 1.0 + place}
    return {"bus_id": ids[place], **ends, "consumption_mw_per_m3s": 0.3 + 0.1 * place, "flow": flow}


def _contract(place: int, ids: Sequence[int]) -> dict[str, Any]:
    limits = {"min_mw": 0.0, "max_mw": 2.0 + place}
    kind = "export" if place == 1 else "import"
    return {"bus_id": ids[place], "type": kind, "price_per_mwh": (70.0, -9.0, 95.0)[place], "limits": limits}


def _production(place: int) -> dict[str, Any]:
    if place == 1:
        return {"start_stage_id": 0, "model": "fpha", "fpha_config": {"source": "precomputed"}}
    return {
        "start_stage_id": 0,
        "model": "constant_productivity",
        "productivity_mw_per_m3s": 0.7 + 0.1 * place,
    }


def _group(kind: str, ids: Sequence[int]) -> dict[str, Any]:
    rows = [[1.0 if left == right else 0.6 / (1 + left + right) for right in PLACES] for left in PLACES]
    return {"name": kind, "entities": [{"type": kind, "id": id_} for id_ in ids], "matrix": rows}


def _constraint(id_: int, expression: str) -> dict[str, Any]:
    return {"id": id_, "name": f"row {id_}", "expression": expression, "slack": {"enabled": True, "penalty": 90.0}}


def _tables(source: str, ids: Sequence[int]) -> dict[str, dict[str, list[Any]]]:
    """Return all Parquet files by name; columns are lists."""
    draw = random.Random(5)
    pairs = [(place, stage) for place in PLACES for stage in STAGES]
    keys = {"stage_id": [stage for _, stage in pairs]}
    owners = [ids[place] for place, _ in pairs]

    def numbers(low: float, high: float) -> list[float]:
        return [round(draw.uniform(low, high), 2) for _ in pairs]

    means, past = numbers(12.0, 25.0), [14.0, 18.0, 22.0]
    tables: dict[str, dict[str, list[Any]]] = {
        "scenarios/load_seasonal_stats": {
            "bus_id": owners,
            **keys,
            "mean_mw": numbers(20, 45),
            "std_mw": numbers(1, 4),
        },
        "scenarios/non_controllable_stats": {
            "ncs_id": owners,
            **keys,
            "mean": numbers(0.3, 0.7),
            "std": numbers(0, 0.2),
        },
        "system/fpha_hyperplanes": {
            "hydro_id": [ids[1]] * 2,
            "plane_id": [0, 1],
            "gamma_0": [1.0, 3.0],
            "gamma_v": [0.02, 0.01],
            "gamma_q": [0.8, 0.6],
            "gamma_s": [-0.01, 0.0],
        },
        "constraints/generic_constraint_bounds": {"constraint_id": [0, 0, 1], "stage_id": [0, 1, 2]},
        "constraints/thermal_bounds": {"thermal_id": owners, **keys, "max_generation_mw": numbers(14, 26)},
        "constraints/hydro_bounds": {"hydro_id": owners, **keys, "max_turbined_m3s": numbers(25, 32)},
        "constraints/hydro_unit_group_bounds": {
            "hydro_id": owners,
            "hydro_unit_group_id": [1] * len(pairs),
            **keys,
            "max_turbined_m3s": numbers(8, 12),
        },
        "constraints/line_bounds": {"line_id": owners, **keys, "direct_mw": numbers(4, 12)},
        "constraints/pumping_bounds": {"pumping_station_id": owners, **keys, "max_m3s": numbers(1, 3)},
        "constraints/contract_bounds": {"contract_id": owners, **keys, "max_mw": numbers(2, 4)},
        "constraints/ncs_bounds": {"ncs_id": owners, **keys, "available_generation_mw": numbers(6, 20)},
        "constraints/penalty_overrides_bus": {"bus_id": owners, **keys, "excess_cost": numbers(1, 2)},
        "constraints/penalty_overrides_line": {"line_id": owners, **keys, "exchange_cost": numbers(0.1, 0.2)},
        "constraints/penalty_overrides_hydro": {"hydro_id": owners, **keys, "turbined_cost": numbers(0.01, 0.05)},
        "constraints/penalty_overrides_ncs": {"ncs_id": owners, **keys, "curtailment_cost": numbers(0.1, 0.3)},
    }
    if source == "estimated":
        return tables | {"scenarios/inflow_history": _history(ids, draw)}
    before = {"hydro_id": [*owners, *ids], "stage_id": [*keys["stage_id"], -1, -1, -1]}
    tables["scenarios/inflow_seasonal_stats"] = before | {"mean_m3s": [*means, *past], "std_m3s": [3.0] * 12}
    tables["scenarios/inflow_ar_coefficients"] = {
        "hydro_id": owners,
        **keys,
        "lag": [1] * len(pairs),
        "coefficient": numbers(0.1, 0.5),
    }
    if source == "openings":
        tables["scenarios/noise_openings"] = _openings(draw)
    if source == "external":
        for name, column, value, low, high in (
            ("inflow", "hydro_id", "value_m3s", 10.0, 30.0),
            ("load", "bus_id", "value_mw", 20.0, 45.0),
            ("ncs", "ncs_id", "availability_factor", 0.2, 0.9),
        ):
            rows = list(product(STAGES, range(4), PLACES))
            tables[f"scenarios/external_{name}_scenarios"] = {
                "stage_id": [row[0] for row in rows],
                "scenario_id": [row[1] for row in rows],
                column: [ids[row[2]] for row in rows],
                value: [round(draw.uniform(low, high), 2) for _ in rows],
            }
    if source == "historical":
        tables["scenarios/inflow_history"] = _history(ids, draw)
    return tables


def _openings(draw: random.Random) -> dict[str, list[Any]]:
    """Draw the noise of all entities by position: inflows, loads, sources."""
    rows = list(product(STAGES, range(3), range(9)))
    names = ("stage_id", "opening_index", "entity_index")
    columns: dict[str, list[Any]] = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return columns | {"value": [round(draw.gauss(0.0, 1.0), 3) for _ in rows]}


def _history(ids: Sequence[int], draw: random.Random) -> dict[str, list[Any]]:
    """Return ten years of monthly inflows of all plants."""
    rows = [(place, year, month) for place in PLACES for year in range(2013, 2023) for month in range(1, 13)]
    return {
        "hydro_id": [ids[place] for place, _, _ in rows],
        "start_date": [date(year, month, 1) for _, year, month in rows],
        "end_date": [date(year + month // 12, month % 12 + 1, 1) for _, year, month in rows],
        "value_m3s": [round(12.0 + 4.0 * place + draw.uniform(0.0, 12.0), 2) for place, _, _ in rows],
    }
