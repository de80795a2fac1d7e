"""The files of `system/`, and initial volumes."""

from typing import Any

from generation.files import Files, table
from generation.system import Bus, HydroPlant, Line, System, ThermalPlant, WindFarm

GAMMAS = ("gamma_0", "gamma_v", "gamma_q", "gamma_s")
FIRST_DEFICIT_SHARE = 0.05  # of the load: depth of the first deficit segment


def system_files(system: System, start_date: str, deficit_costs: tuple[float, float]) -> Files:
    """Return the files of entities, each with its id and the common date."""
    lists: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "buses": ("buses", [_bus(bus, deficit_costs) for bus in system.buses]),
        "lines": ("lines", [_line(line, system) for line in system.lines]),
        "thermals": ("thermals", [_thermal(plant) for plant in system.thermals]),
        "hydros": ("hydros", [_hydro(plant) for plant in system.hydros]),
    }
    if system.winds:
        lists["non_controllable_sources"] = "non_controllable_sources", [_wind(farm) for farm in system.winds]
    files: dict[str, Any] = {
        f"system/{file}.json": {key: [_numbered(index, row, start_date) for index, row in enumerate(rows)]}
        for file, (key, rows) in lists.items()
    }
    files["system/hydro_production_models.json"] = {
        "production_models": [_production(index, plant) for index, plant in enumerate(system.hydros)]
    }
    return {**files, **production_files(system)}


def production_files(system: System) -> Files:
    """Return tables of planes, and of productivities for stored energy of plants with planes."""
    plants = [(index, plant) for index, plant in enumerate(system.hydros) if plant.planes]
    if not plants:
        return {}
    rows = [(index, number, plane) for index, plant in plants for number, plane in enumerate(plant.planes)]
    columns: dict[str, list[Any]] = {
        "hydro_id": [index for index, _, _ in rows],
        "stage_id": [None] * len(rows),
        "plane_id": [number for _, number, _ in rows],
    }
    columns |= {gamma: [getattr(plane, gamma) for _, _, plane in rows] for gamma in GAMMAS}
    productivity: dict[str, list[Any]] = {
        "hydro_id": [index for index, _ in plants],
        "stage_id": [None] * len(plants),
        "equivalent_productivity_mw_per_m3s": [plant.productivity_mw_per_m3s for _, plant in plants],
        "reference_outflow_m3s": [None] * len(plants),
        "specific_productivity_mw_per_m3s_per_m": [None] * len(plants),
    }
    return {
        "system/fpha_hyperplanes.parquet": table(**columns),
        "system/hydro_energy_productivity.parquet": table(**productivity),
    }


def _numbered(index: int, row: dict[str, Any], start_date: str) -> dict[str, Any]:
    return {"id": index, "name": row.pop("name"), "operational_start_date": start_date, **row}


def _bus(bus: Bus, deficit_costs: tuple[float, float]) -> dict[str, Any]:
    first, beyond = deficit_costs
    tiers = [
        {"depth_mw": round(FIRST_DEFICIT_SHARE * bus.load_mw, 1), "cost": first},
        {"depth_mw": None, "cost": beyond},
    ]
    return {"name": bus.name, "deficit_segments": tiers}


def _line(line: Line, system: System) -> dict[str, Any]:
    return {
        "name": f"{system.buses[line.source].name} to {system.buses[line.target].name}",
        "source_bus_id": line.source,
        "target_bus_id": line.target,
        "capacity": {"direct_mw": line.direct_mw, "reverse_mw": line.reverse_mw},
    }


def _thermal(plant: ThermalPlant) -> dict[str, Any]:
    return {
        "name": plant.name,
        "bus_id": plant.bus,
        "cost_per_mwh": plant.cost_per_mwh,
        "generation": {"min_mw": plant.min_mw, "max_mw": plant.max_mw},
    }


def _wind(farm: WindFarm) -> dict[str, Any]:
    return {"name": farm.name, "bus_id": farm.bus, "max_generation_mw": farm.max_mw}


def _hydro(plant: HydroPlant) -> dict[str, Any]:
    machines = {
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": plant.max_turbined_m3s,
        "min_generation_mw": 0.0,
        "max_generation_mw": plant.max_generation_mw,
    }
    return {
        "name": plant.name,
        "downstream_id": plant.downstream,
        "reservoir": {"min_storage_hm3": plant.min_storage_hm3, "max_storage_hm3": plant.max_storage_hm3},
        "outflow": {"min_outflow_m3s": plant.min_outflow_m3s, "max_outflow_m3s": None},
        "generation": {"model": _model(plant), **machines},
        "unit_groups": [{"id": 0, "name": "all units", "bus_id": plant.bus, **machines}],
    }


def _model(plant: HydroPlant) -> str:
    return "fpha" if plant.planes else "constant_productivity"


def _production(index: int, plant: HydroPlant) -> dict[str, Any]:
    everywhere: dict[str, Any] = {"start_stage_id": 0, "end_stage_id": None, "model": _model(plant)}
    if plant.planes:
        everywhere["fpha_config"] = {"source": "precomputed"}
    else:
        everywhere["productivity_mw_per_m3s"] = plant.productivity_mw_per_m3s
    return {"hydro_id": index, "selection_mode": "stage_ranges", "stage_ranges": [everywhere]}
