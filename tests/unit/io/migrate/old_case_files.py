"""A case of format version 0.5 on the disk, to be changed and migrated."""

import json

import pyarrow as pa
from pyarrow import parquet

from cobre.io.case import load_case
from cobre.io.migrate import migrate_case

LIMITS = {"min_turbined_m3s": 0.0, "max_turbined_m3s": 50.0, "min_generation_mw": 0.0, "max_generation_mw": 45.0}


def stage(id_, **fields):
    return {
        "id": id_,
        "start_date": f"2024-0{id_ + 1}-01",
        "end_date": f"2024-0{id_ + 2}-01",
        "blocks": [{"id": 0, "name": "light", "hours": 400}, {"id": 1, "name": "heavy", "hours": 330}],
        "num_scenarios": 3,
        **fields,
    }


def hydro(id_, downstream_id=None, model="constant_productivity", **fields):
    productivity = {} if model == "fpha" else {"productivity_mw_per_m3s": 0.9}
    return {
        "id": id_,
        "name": f"H{id_}",
        "bus_id": 0,
        "downstream_id": downstream_id,
        "reservoir": {"min_storage_hm3": 0.0, "max_storage_hm3": 100.0},
        "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": None},
        "generation": {"model": model, **productivity, **LIMITS},
        **fields,
    }


def old_documents():
    names = (
        "storage_violation_below",
        "filling_target_violation",
        "turbined_violation_below",
        "outflow_violation_below",
    )
    names += (
        "outflow_violation_above",
        "generation_violation_below",
        "evaporation_violation",
        "water_withdrawal_violation",
    )
    return {
        "config.json": {
            "$schema": "https://example.org/config.json",
            "training": {"forward_passes": 2, "stopping_rules": [{"type": "iteration_limit", "limit": 9}]},
            "simulation": {"enabled": True, "num_scenarios": 50},
        },
        "stages.json": {
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.12},
            "stages": [stage(0), stage(1), stage(2)],
        },
        "initial_conditions.json": {
            "storage": [{"hydro_id": 0, "value_hm3": 40.0}, {"hydro_id": 1, "value_hm3": 30.0}],
            "filling_storage": [],
        },
        "penalties.json": {
            "bus": {"deficit_segments": [{"depth_mw": None, "cost": 1000.0}], "excess_cost": 1.0},
            "line": {"exchange_cost": 0.1},
            "hydro": {"spillage_cost": 0.1, "fpha_turbined_cost": 0.05, "diversion_cost": 0.1}
            | {f"{name}_cost": 500.0 for name in names},
            "non_controllable_source": {"curtailment_cost": 0.1},
        },
        "system/buses.json": {"buses": [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}]},
        "system/lines.json": {
            "lines": [
                {
                    "id": 4,
                    "name": "AB",
                    "source_bus_id": 0,
                    "target_bus_id": 1,
                    "capacity": {"direct_mw": 10.0, "reverse_mw": 20.0},
                }
            ]
        },
        "system/thermals.json": {
            "thermals": [
                {"id": 0, "name": "T", "bus_id": 0, "cost_per_mwh": 30.0, "generation": {"min_mw": 0.0, "max_mw": 60.0}}
            ]
        },
        "system/hydros.json": {"hydros": [hydro(0, 1), hydro(1)]},
    }


def old_tables():
    ids = [(id_, t) for id_ in (0, 1) for t in range(3)]
    return {
        "scenarios/inflow_seasonal_stats.parquet": {
            "hydro_id": pa.array([id_ for id_, _ in ids], pa.int32()),
            "stage_id": pa.array([t for _, t in ids], pa.int32()),
            "mean_m3s": pa.array([20.0] * 6, pa.float64()),
            "std_m3s": pa.array([4.0] * 6, pa.float64()),
        },
    }


def fpha_planes(*hydro_ids):
    ones = pa.array([1.0] * len(hydro_ids), pa.float64())
    ids = pa.array(hydro_ids, pa.int32())
    zero = pa.array([0.0] * len(hydro_ids), pa.float64())
    return {
        "hydro_id": ids,
        "plane_id": pa.array([0] * len(hydro_ids), pa.int32()),
        "gamma_0": ones,
        "gamma_v": zero,
        "gamma_q": ones,
        "gamma_s": zero,
        "valid_from": ones,
    }


class Old:
    """An old case on the disk, to be changed before it is migrated."""

    def __init__(self, folder):
        self.folder, self.documents, self.tables = folder, old_documents(), old_tables()

    def migrate(self, is_sound=True):
        source, target = self.folder / "old", self.folder / "new"
        for name, content in self.documents.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(json.dumps(content))
        for name, columns in self.tables.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(pa.table(columns), source / name, compression="snappy")
        report = migrate_case(source, target)
        if is_sound:
            assert [str(problem) for problem in report.problems if not problem.is_warning] == []
        return report

    def new(self, name):
        path = self.folder / "new" / name
        return json.loads(path.read_text()) if name.endswith(".json") else parquet.read_table(path)

    @property
    def case(self):
        return load_case(self.folder / "new")


def texts(report, kind):
    return "\n".join(str(note) for note in report.notes if note.kind is kind)
