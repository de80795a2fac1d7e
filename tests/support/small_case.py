"""A small system in the files of the case format."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from small_system import (
    DEFICIT_COST,
    EVAPORATION_COST,
    EXCESS_COST,
    EXCHANGE_COST,
    FILLING_COST,
    MAX_GENERATION,
    OUTFLOW_BELOW_COST,
    SPILLAGE_COST,
    STORAGE_BELOW_COST,
    TURBINED_COST,
    SmallHydro,
    SmallSystem,
)

START = {"operational_start_date": "2024-01-01"}
MONTHS = 12


def write_case(folder: Path, system: SmallSystem, forward_passes: int, iterations: int) -> Path:
    """All files; the folder is the case."""
    files = {
        "config.json": _config(system, forward_passes, iterations),
        "stages.json": _stages(system),
        "penalties.json": _penalties(),
        "initial_conditions.json": _initial_conditions(system),
        "scenarios/load_factors.json": _load_factors(system),
        **_system(system),
    }
    tables = {
        "scenarios/inflow_seasonal_stats.parquet": _inflow_stats(system),
        "scenarios/load_seasonal_stats.parquet": _load_stats(system),
    }
    if not system.tree:
        tables["scenarios/noise_openings.parquet"] = _openings(system)
    if system.has_memory:
        tables["scenarios/inflow_ar_coefficients.parquet"] = _memory(system)
    _add_limits(system, files, tables)
    _add_plant_tables(system, tables)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name, compression="zstd")
    return folder


def _add_limits(system: SmallSystem, files: dict, tables: dict) -> None:
    """Add the files of constraints/, where the system has limits by stage or a constraint."""
    if system.thermal_rows:
        plants, stages, most, price = (list(column) for column in zip(*system.thermal_rows, strict=True))
        ids = {"thermal_id": plants, "stage_id": stages}
        tables["constraints/thermal_bounds.parquet"] = _table(ids, {"max_generation_mw": most, "cost_per_mwh": price})
    rows = [(*row, None) for row in system.turbine_rows] + [(*row[:2], None, row[2]) for row in system.storage_rows]
    if rows:
        plants, stages, turbined, stored = (list(column) for column in zip(*rows, strict=True))
        values = {"max_turbined_m3s": turbined, "max_storage_hm3": stored}
        tables["constraints/hydro_bounds.parquet"] = _table({"hydro_id": plants, "stage_id": stages}, values)
    if system.floor is not None:
        total = " + ".join(f"thermal_generation({index})" for index in range(len(system.thermals)))
        slack = {"enabled": True, "penalty": system.floor[1]}
        row = {"id": 0, "name": "floor", "expression": f"{total} >= {system.floor[0]}", "slack": slack}
        files["constraints/generic_constraints.json"] = {"constraints": [row]}
        stages = list(range(system.num_stages))
        ids = {"constraint_id": [0] * len(stages), "stage_id": stages}
        tables["constraints/generic_constraint_bounds.parquet"] = _table(ids, {})


def _add_plant_tables(system: SmallSystem, tables: dict) -> None:
    """Planes with the productivity of energy, areas of lakes, and inflows by scenario, where the system has them."""
    hydros = list(enumerate(system.hydros))
    planes = [(index, number, *plane) for index, hydro in hydros for number, plane in enumerate(hydro.planes)]
    if planes:
        plants, numbers, *gammas = (list(column) for column in zip(*planes, strict=True))
        names = ("gamma_0", "gamma_v", "gamma_q", "gamma_s")
        values = dict(zip(names, gammas, strict=True)) | {"kappa": [1.0] * len(planes)}
        tables["system/fpha_hyperplanes.parquet"] = _table({"hydro_id": plants, "plane_id": numbers}, values)
        with_planes = sorted(set(plants))
        ids, rates = {"hydro_id": with_planes, "stage_id": [None] * len(with_planes)}, [1.0] * len(with_planes)
        nothing = dict.fromkeys(
            ("reference_outflow_m3s", "specific_productivity_mw_per_m3s_per_m"), [None] * len(with_planes)
        )
        productivity = _table(ids, {"equivalent_productivity_mw_per_m3s": rates} | nothing)
        tables["system/hydro_energy_productivity.parquet"] = productivity
    lakes = [(index, hydro) for index, hydro in hydros if hydro.evaporation_mm]
    if lakes:
        points = [
            (index, volume, 100.0 + volume / 100.0, area)
            for index, hydro in lakes
            for volume, area in zip((hydro.min_hm3, hydro.max_hm3), hydro.area, strict=True)
        ]
        plants, *values = (list(column) for column in zip(*points, strict=True))
        names = ("volume_hm3", "height_m", "area_km2")
        geometry = _table({"hydro_id": plants}, dict(zip(names, values, strict=True)))
        tables["system/hydro_geometry.parquet"] = geometry
    by_node = [((node.stage, place), node.inflow) for place, node in zip(_places(system), system.tree, strict=True)]
    library = [
        ((stage, opening), values)
        for stage, openings in enumerate(system.library)
        for opening, values in enumerate(openings)
    ]
    if library or by_node:
        rows = [(*key, hydro, value) for key, values in library + by_node for hydro, value in enumerate(values)]
        stages, openings, plants, values = (list(column) for column in zip(*rows, strict=True))
        ids = {"stage_id": stages, "scenario_id": openings, "hydro_id": plants}
        tables["scenarios/external_inflow_scenarios.parquet"] = _table(ids, {"value_m3s": values})


def _places(system: SmallSystem) -> list[int]:
    """Return the place of every node of the tree among those of its stage."""
    stages = [node.stage for node in system.tree]
    return [stages[:at].count(stage) for at, stage in enumerate(stages)]


def _config(system: SmallSystem, forward_passes: int, iterations: int) -> dict:
    external = {"seed": 7, "inflow": {"scheme": "external"}} if system.library or system.tree else {}
    sampled = {"method": "sampled", "forward_passes": forward_passes}
    openings = {} if system.tree else {"openings": {"source": "file"}}
    return {
        "training": {
            "selection": {"method": "enumerated"} if system.tree else sampled,
            "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
            "scenario_source": openings | external,
        },
        "simulation": {"enabled": False},
        "modeling": {"inflow_non_negativity": {"method": "none"}},
    }


def _stages(system: SmallSystem) -> dict:
    seasons = [{"id": month, "label": f"month {month + 1}", "month_start": month + 1} for month in range(MONTHS)]
    graph = {"type": "finite_horizon", "annual_discount_rate": system.discount_rate}
    if system.tree:
        nodes = list(enumerate(zip(system.tree, _places(system), strict=True)))
        graph["nodes"] = [{"id": id_, "stage_id": node.stage, "scenario_id": place} for id_, (node, place) in nodes]
        graph["transitions"] = [
            {"source_id": node.parent, "target_id": id_, "probability": node.probability}
            for id_, (node, _) in nodes
            if node.parent >= 0
        ]
    return {
        "policy_graph": graph,
        "stages": [_stage(system, number) for number in range(system.num_stages)],
        "pre_study_stages": [{"id": -1, "start_date": "2023-12-01", "end_date": "2024-01-01", "season_id": MONTHS - 1}],
        "season_definitions": {"cycle_type": "monthly", "seasons": seasons},
    }


def _stage(system: SmallSystem, number: int) -> dict:
    stage = {
        "id": number,
        "start_date": system.first_day(number).isoformat(),
        "end_date": system.first_day(number + 1).isoformat(),
        "season_id": number % MONTHS,
        "blocks": [{"id": block, "name": f"block {block}", "hours": hours} for block, hours in enumerate(system.hours)],
        "block_mode": "chronological" if system.is_chronological else "parallel",
        "state_variables": {"storage": True, "inflow_lags": system.has_memory},
    }
    if not system.tree:
        stage["num_openings"] = system.num_openings
    if system.risk is not None:
        alpha, share = system.risk
        stage["risk_measure"] = {"cvar": {"alpha": alpha, "lambda": share}}
    return stage


def _penalties() -> dict:
    unused = (
        "diversion_cost",
        "turbined_violation_below_cost",
        "outflow_violation_above_cost",
        "generation_violation_below_cost",
        "water_withdrawal_violation_cost",
    )
    used = {
        "spillage_cost": SPILLAGE_COST,
        "turbined_cost": TURBINED_COST,
        "outflow_violation_below_cost": OUTFLOW_BELOW_COST,
        "evaporation_violation_cost": EVAPORATION_COST,
        "filling_target_violation_cost": FILLING_COST,
        "storage_violation_below_cost": STORAGE_BELOW_COST,
    }
    return {
        "bus": {"deficit_segments": [{"depth_mw": None, "cost": DEFICIT_COST}], "excess_cost": EXCESS_COST},
        "line": {"exchange_cost": EXCHANGE_COST},
        "hydro": used | dict.fromkeys(unused, 1000.0),
        "non_controllable_source": {"curtailment_cost": 1.0},
    }


def _initial_conditions(system: SmallSystem) -> dict:
    hydros = list(enumerate(system.hydros))
    window = {"start_date": "2023-12-01", "end_date": "2024-01-01"}
    released = [
        {"hydro_id": index, "start_date": "2023-01-01", "end_date": "2024-01-01", "value_m3s": hydro.released_before}
        for index, hydro in hydros
        if hydro.travel_hours
    ]
    ordered = [
        {
            "thermal_id": index,
            "start_date": system.first_day(0).isoformat(),
            "end_date": system.first_day(min(plant.lead, system.num_stages)).isoformat(),
            "value_mw": plant.order_mw,
        }
        for index, plant in enumerate(system.thermals)
        if plant.lead
    ]
    ahead = {"past_defluences": released} if released else {}
    ahead |= {"past_anticipated_commitments": ordered} if ordered else {}
    first = [({"hydro_id": index, "value_hm3": hydro.first_hm3}, hydro.filling) for index, hydro in hydros]
    return ahead | {
        "storage": [row for row, filling in first if filling is None],
        "filling_storage": [row for row, filling in first if filling is not None],
        "recent_observations": [
            {"hydro_id": index, **window, "value_m3s": hydro.last_inflow}
            for index, hydro in hydros
            if system.has_memory
        ],
    }


def _load_factors(system: SmallSystem) -> dict:
    factors = [{"block_id": block, "factor": factor} for block, factor in enumerate(system.load_factors)]
    rows = [
        {"bus_id": bus, "stage_id": stage, "block_factors": factors}
        for bus in range(system.num_buses)
        for stage in range(system.num_stages)
    ]
    return {"load_factors": rows}


def _system(system: SmallSystem) -> dict:
    thermals = [
        {"bus_id": one.bus, "cost_per_mwh": one.cost, "generation": {"min_mw": one.min_mw, "max_mw": one.max_mw}}
        | ({"anticipated_config": {"lead_stages": one.lead}} if one.lead else {})
        for one in system.thermals
    ]
    lines = [
        {
            "source_bus_id": one.source,
            "target_bus_id": one.target,
            "capacity": {"direct_mw": one.direct_mw, "reverse_mw": one.reverse_mw},
            "losses_percent": one.losses_percent,
        }
        for one in system.lines
    ]
    sources = [
        {"bus_id": one.bus, "max_generation_mw": one.available_mw, "curtailment_cost": one.reward}
        for one in system.sources
    ]
    contracts = [
        {
            "bus_id": one.bus,
            "type": "import" if one.sign > 0 else "export",
            "price_per_mwh": one.price,
            "limits": {"min_mw": 0.0, "max_mw": one.max_mw},
        }
        for one in system.contracts
    ]
    pumps = [
        {
            "bus_id": one.bus,
            "source_hydro_id": one.source,
            "destination_hydro_id": one.destination,
            "consumption_mw_per_m3s": one.consumption,
            "flow": {"min_m3s": 0.0, "max_m3s": one.max_m3s},
        }
        for one in system.pumps
    ]
    models = [_production(index, hydro) for index, hydro in enumerate(system.hydros)]
    return {
        "system/buses.json": {"buses": _numbered([{} for _ in range(system.num_buses)])},
        "system/lines.json": {"lines": _numbered(lines)},
        "system/thermals.json": {"thermals": _numbered(thermals)},
        "system/hydros.json": {"hydros": _numbered([_hydro(hydro) for hydro in system.hydros])},
        "system/hydro_production_models.json": {"production_models": models},
        "system/non_controllable_sources.json": {"non_controllable_sources": _numbered(sources)},
        "system/energy_contracts.json": {"contracts": _numbered(contracts)},
        "system/pumping_stations.json": {"pumping_stations": _numbered(pumps)},
    }


def _numbered(rows: list[dict]) -> list[dict]:
    return [{"id": index, "name": f"number {index}", **START, **row} for index, row in enumerate(rows)]


def _hydro(hydro: SmallHydro) -> dict:
    machines = {
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": hydro.max_turbined,
        "min_generation_mw": 0.0,
        "max_generation_mw": MAX_GENERATION,
    }
    others = {"travel_time_hours": hydro.travel_hours} if hydro.travel_hours else {}
    if hydro.evaporation_mm:
        others["evaporation"] = {"coefficients_mm": [hydro.evaporation_mm] * MONTHS}
    if hydro.filling is not None:
        start, entry, rate = hydro.filling
        others |= {"entry_stage_id": entry, "filling": {"start_stage_id": start, "filling_min_rate_m3s": rate}}
    return others | {
        "downstream_id": hydro.downstream,
        "reservoir": {"min_storage_hm3": hydro.min_hm3, "max_storage_hm3": hydro.max_hm3},
        "outflow": {"min_outflow_m3s": hydro.min_outflow, "max_outflow_m3s": None},
        "generation": {"model": _model(hydro), **machines},
        "unit_groups": [{"id": 0, "name": "all", "bus_id": hydro.bus, **machines}],
    }


def _model(hydro: SmallHydro) -> str:
    return "fpha" if hydro.planes else "constant_productivity"


def _production(index: int, hydro: SmallHydro) -> dict:
    always = {"start_stage_id": 0, "end_stage_id": None, "model": _model(hydro)}
    given = {"fpha_config": {"source": "precomputed"}} if hydro.planes else {}
    return {
        "hydro_id": index,
        "selection_mode": "stage_ranges",
        "stage_ranges": [always | (given or {"productivity_mw_per_m3s": hydro.productivity})],
    }


def _table(ids: dict[str, list[int]], values: dict[str, list[float]]) -> pa.Table:
    columns = {name: pa.array(column, pa.int32()) for name, column in ids.items()}
    return pa.table(columns | {name: pa.array(column, pa.float64()) for name, column in values.items()})


def _inflow_stats(system: SmallSystem) -> pa.Table:
    """Return inflow statistics, also of the stage before the study, for the lags of the first one."""
    keys = [(hydro, stage) for hydro in range(len(system.hydros)) for stage in range(-1, system.num_stages)]
    return _table(
        {"hydro_id": [hydro for hydro, _ in keys], "stage_id": [stage for _, stage in keys]},
        {
            "mean_m3s": [system.hydros[hydro].mean_inflow for hydro, _ in keys],
            "std_m3s": [system.hydros[hydro].std_inflow for hydro, _ in keys],
        },
    )


def _memory(system: SmallSystem) -> pa.Table:
    rows = [
        (index, stage, hydro.memory)
        for index, hydro in enumerate(system.hydros)
        for stage in range(system.num_stages)
        if hydro.memory is not None
    ]
    return _table(
        {"hydro_id": [row[0] for row in rows], "stage_id": [row[1] for row in rows], "lag": [1] * len(rows)},
        {"coefficient": [row[2] for row in rows]},
    )


def _load_stats(system: SmallSystem) -> pa.Table:
    keys = [(bus, stage) for bus in range(system.num_buses) for stage in range(system.num_stages)]
    return _table(
        {"bus_id": [bus for bus, _ in keys], "stage_id": [stage for _, stage in keys]},
        {"mean_mw": [system.loads[stage][bus] for bus, stage in keys], "std_mw": [0.0] * len(keys)},
    )


def _openings(system: SmallSystem) -> pa.Table:
    rows = [
        (stage, opening, hydro, value)
        for stage, openings in enumerate(system.noise)
        for opening, values in enumerate(openings)
        for hydro, value in enumerate(values)
    ]
    stages, openings, hydros, values = (list(column) for column in zip(*rows, strict=True))
    return pa.table(
        {
            "stage_id": pa.array(stages, pa.int32()),
            "opening_index": pa.array(openings, pa.uint32()),
            "entity_index": pa.array(hydros, pa.uint32()),
            "value": pa.array(values, pa.float64()),
        }
    )
