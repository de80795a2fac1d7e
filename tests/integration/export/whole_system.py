"""A case with entities of every kind, a constraint that users wrote, and limits by block."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from studies import QUICK_CASE, small_copy

START = {"operational_start_date": "2030-01-01"}
SELECTION = {"method": "lml1", "check_frequency": 1}  # puts most cuts aside
FEW = [{"type": "iteration_limit", "limit": 8}]


def write_whole_system(folder):
    """Write two reservoirs, a bus behind a line, wind, a pump, two contracts, and a floor for thermal plants."""
    case = small_copy(QUICK_CASE, folder, stopping_rules=FEW, cut_selection={"selection": SELECTION})
    buses = json.loads((case / "system" / "buses.json").read_text())
    buses["buses"].append({"id": 1, "name": "Plain", **START})
    line = {"id": 0, "name": "Valley to Plain", **START, "source_bus_id": 0, "target_bus_id": 1}
    line["capacity"] = {"direct_mw": 80.0, "reverse_mw": 60.0}
    wind = {"id": 0, "name": "Wind", **START, "bus_id": 1, "max_generation_mw": 40.0}
    pump = {"id": 0, "name": "Pump", **START, "bus_id": 0, "source_hydro_id": 1, "destination_hydro_id": 0}
    pump |= {"consumption_mw_per_m3s": 1.2, "flow": {"min_m3s": 0.0, "max_m3s": 5.0}}
    contracts = [
        {"id": 0, "name": "Bought", **START, "bus_id": 1, "type": "import", "price_per_mwh": 90.0},
        {"id": 1, "name": "Sold", **START, "bus_id": 0, "type": "export", "price_per_mwh": -20.0},
    ]
    for contract in contracts:
        contract["limits"] = {"min_mw": 0.0, "max_mw": 15.0}
    floor = {"id": 0, "name": "floor", "expression": "thermal_generation(0) + thermal_generation(1)"}
    floor["slack"] = {"enabled": True, "penalty": 3000.0}
    documents = {
        "system/buses.json": buses,
        "system/lines.json": {"lines": [line]},
        "system/non_controllable_sources.json": {"non_controllable_sources": [wind]},
        "system/pumping_stations.json": {"pumping_stations": [pump]},
        "system/energy_contracts.json": {"contracts": contracts},
        "constraints/generic_constraints.json": {"constraints": [floor]},
    }
    (case / "constraints").mkdir(exist_ok=True)
    for name, content in documents.items():
        (case / name).write_text(json.dumps(content))
    _write_tables(case)
    return case


def _write_tables(case):
    bounds = {"constraint_id": [0, 0], "stage_id": [0, 1], "block_id": [None, None]}
    _write(case / "constraints" / "generic_constraint_bounds.parquet", bounds, bound_lower=[300.0, 650.0])
    limits = {"thermal_id": [0, 0], "stage_id": [0, 2], "block_id": [1, None]}
    _write(case / "constraints" / "thermal_bounds.parquet", limits, max_generation_mw=[150.0, 120.0])
    loads = pq.read_table(case / "scenarios" / "load_seasonal_stats.parquet")
    more = {"bus_id": [1] * 12, "stage_id": list(range(12))}
    _write(case / "scenarios" / "more.parquet", more, mean_mw=[30.0] * 12, std_mw=[0.0] * 12)
    both = pa.concat_tables([loads, pq.read_table(case / "scenarios" / "more.parquet").select(loads.column_names)])
    pq.write_table(both, case / "scenarios" / "load_seasonal_stats.parquet", compression="zstd")
    (case / "scenarios" / "more.parquet").unlink()


def _write(path, ids, **numbers):
    columns = {name: pa.array(values, pa.int32()) for name, values in ids.items()}
    columns |= {name: pa.array(values, pa.float64()) for name, values in numbers.items()}
    pq.write_table(pa.table(columns), path, compression="zstd")
