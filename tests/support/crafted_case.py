"""Small cases with a calendar or a graph of their own: thermal plants and a few reservoirs, in files of the format."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

START = {"operational_start_date": "2020-01-01"}
SECONDS = 3600.0


@dataclass(frozen=True)
class Period:
    """A stage. `openings` None: the file says nothing of them."""

    start: str
    end: str
    season: int | None = None
    openings: int | None = 3
    risk: tuple[float, float] | None = None
    hours: float | None = None

    @property
    def all_hours(self) -> float:
        days = (date.fromisoformat(self.end) - date.fromisoformat(self.start)).days
        return 24.0 * days if self.hours is None else self.hours


@dataclass(frozen=True)
class CraftedCase:
    """What a case is made of; keys of the tables are (plant, stage)."""

    periods: Sequence[Period]
    inflow: Mapping[tuple[int, int], tuple[float, float]] = field(default_factory=dict)  # mean, deviation
    memory: Mapping[tuple[int, int, int], float] = field(default_factory=dict)  # (plant, stage, lag)
    seasons: dict | None = None
    before: Sequence[tuple[int, str, str, int]] = ()  # stages before the study: id, dates, season
    observed: Sequence[tuple[int, str, str, float]] = ()  # plant, dates, m3/s
    history: Sequence[tuple[int, str, str, float]] = ()
    external: Sequence[tuple[int, int, int, float]] = ()  # stage, scenario, plant, m3/s
    external_load: Sequence[tuple[int, int, int, float]] = ()  # stage, scenario, bus, MW
    nodes: Sequence[dict] = ()
    transitions: Sequence[dict] = ()
    plants: int = 1
    load_mw: float = 90.0
    load_std: float = 0.0
    loads: Mapping[int, float] = field(default_factory=dict)  # MW by stage, where it is another one
    first_hm3: float = 100.0
    max_hm3: float = 200.0
    discount_rate: float = 0.0
    method: str = "none"
    rules: Sequence[dict] = ({"type": "iteration_limit", "limit": 10},)
    selection: dict = field(default_factory=lambda: {"method": "sampled", "forward_passes": 2})
    simulation: dict | None = None
    source: dict | None = None
    training: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)


def write_crafted(folder: Path, case: CraftedCase) -> Path:
    """All files; the folder is the case."""
    files = {
        "config.json": _config(case),
        "stages.json": _stages(case),
        "initial_conditions.json": _initial(case),
        "penalties.json": PENALTIES,
        "system/buses.json": {"buses": [{"id": 0, "name": "bus", **START}]},
        "system/lines.json": {"lines": []},
        "system/thermals.json": {"thermals": _thermals()},
        "system/hydros.json": {"hydros": [_hydro(case, plant) for plant in range(case.plants)]},
        "system/hydro_production_models.json": {"production_models": [_production(p) for p in range(case.plants)]},
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    (folder / "scenarios").mkdir(exist_ok=True)
    for name, table in _tables(case).items():
        pq.write_table(table, folder / "scenarios" / f"{name}.parquet", compression="zstd")
    return folder


def months(label: str = "monthly") -> dict:
    """Twelve seasons, as months or as custom seasons that equal them."""
    last = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    seasons = [{"id": m, "label": f"month {m + 1}", "month_start": m + 1} for m in range(12)]
    if label == "custom":
        seasons = [
            season | {"day_start": 1, "month_end": m + 1, "day_end": last[m]} for m, season in enumerate(seasons)
        ]
    return {"cycle_type": label, "seasons": seasons}


def quarters(first_id: int = 0) -> list[dict]:
    """Four custom seasons."""
    ends = ((3, 31), (6, 30), (9, 30), (12, 31))
    return [
        {
            "id": first_id + q,
            "label": f"Q{q + 1}",
            "month_start": 3 * q + 1,
            "day_start": 1,
            "month_end": ends[q][0],
            "day_end": ends[q][1],
        }
        for q in range(4)
    ]


def weeks() -> dict:
    """52 seasons."""
    return {
        "cycle_type": "weekly",
        "seasons": [{"id": w, "label": f"week {w + 1}", "month_start": min(12, 1 + w // 4)} for w in range(52)],
    }


PENALTIES = {
    "bus": {"deficit_segments": [{"depth_mw": None, "cost": 5000.0}], "excess_cost": 0.01},
    "line": {"exchange_cost": 0.01},
    "hydro": {
        "spillage_cost": 0.01,
        "turbined_cost": 0.0,
        "diversion_cost": 0.1,
        "storage_violation_below_cost": 1000.0,
        "filling_target_violation_cost": 1000.0,
        "turbined_violation_below_cost": 500.0,
        "outflow_violation_below_cost": 500.0,
        "outflow_violation_above_cost": 500.0,
        "generation_violation_below_cost": 500.0,
        "evaporation_violation_cost": 1000.0,
        "water_withdrawal_violation_cost": 1000.0,
    },
    "non_controllable_source": {"curtailment_cost": 1.0},
}


def _config(case: CraftedCase) -> dict:
    training = {"selection": case.selection, "stopping_rules": list(case.rules), **case.training}
    if case.source is not None:
        training["scenario_source"] = case.source
    simulation = {"enabled": False} if case.simulation is None else {"enabled": True, **case.simulation}
    modeling = {"inflow_non_negativity": {"method": case.method}}
    return {"training": training, "simulation": simulation, "modeling": modeling, **case.config}


def _stages(case: CraftedCase) -> dict:
    graph = {"type": "finite_horizon", "annual_discount_rate": case.discount_rate}
    if case.nodes:
        graph["nodes"] = list(case.nodes)
    if case.transitions:
        graph["transitions"] = list(case.transitions)
    found = {"policy_graph": graph, "stages": [_stage(case, number) for number in range(len(case.periods))]}
    if case.before:
        names = ("id", "start_date", "end_date", "season_id")
        found["pre_study_stages"] = [dict(zip(names, row, strict=True)) for row in case.before]
    if case.seasons is not None:
        found["season_definitions"] = case.seasons
    return found


def _stage(case: CraftedCase, number: int) -> dict:
    period = case.periods[number]
    stage = {
        "id": number,
        "start_date": period.start,
        "end_date": period.end,
        "blocks": [{"id": 0, "name": "all", "hours": period.all_hours}],
        "state_variables": {"storage": True, "inflow_lags": bool(case.memory) or bool(case.history)},
    }
    if period.season is not None:
        stage["season_id"] = period.season
    if period.openings is not None:
        stage["num_openings"] = period.openings
    if period.risk is not None:
        stage["risk_measure"] = {"cvar": {"alpha": period.risk[0], "lambda": period.risk[1]}}
    return stage


def _initial(case: CraftedCase) -> dict:
    names = ("hydro_id", "start_date", "end_date", "value_m3s")
    return {
        "storage": [{"hydro_id": plant, "value_hm3": case.first_hm3} for plant in range(case.plants)],
        "filling_storage": [],
        "recent_observations": [dict(zip(names, row, strict=True)) for row in case.observed],
    }


def _thermals() -> list[dict]:
    prices = ((0, 40.0, 40.0), (1, 110.0, 60.0), (2, 300.0, 60.0))
    return [
        {
            "id": id_,
            "name": f"t{id_}",
            "bus_id": 0,
            "cost_per_mwh": cost,
            "generation": {"min_mw": 0.0, "max_mw": most},
            **START,
        }
        for id_, cost, most in prices
    ]


def _hydro(case: CraftedCase, plant: int) -> dict:
    machines = {
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": 120.0,
        "min_generation_mw": 0.0,
        "max_generation_mw": 120.0,
    }
    return {
        "id": plant,
        "name": f"h{plant}",
        **START,
        "downstream_id": plant + 1 if plant + 1 < case.plants else None,
        "reservoir": {"min_storage_hm3": 0.0, "max_storage_hm3": case.max_hm3},
        "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": None},
        "generation": {"model": "constant_productivity", **machines},
        "unit_groups": [{"id": 0, "name": "all", "bus_id": 0, **machines}],
    }


def _production(plant: int) -> dict:
    always = {"start_stage_id": 0, "end_stage_id": None, "model": "constant_productivity"}
    return {
        "hydro_id": plant,
        "selection_mode": "stage_ranges",
        "stage_ranges": [{**always, "productivity_mw_per_m3s": 0.8}],
    }


def _tables(case: CraftedCase) -> dict[str, pa.Table]:
    stages = range(len(case.periods))
    loads = [(0, stage, case.loads.get(stage, case.load_mw), case.load_std) for stage in stages]
    found = {"load_seasonal_stats": _table(("bus_id", "stage_id"), ("mean_mw", "std_mw"), loads)}
    if case.inflow:
        rows = [(*key, *value) for key, value in case.inflow.items()]
        found["inflow_seasonal_stats"] = _table(("hydro_id", "stage_id"), ("mean_m3s", "std_m3s"), rows)
    if case.memory:
        rows = [(*key, value) for key, value in case.memory.items()]
        found["inflow_ar_coefficients"] = _table(("hydro_id", "stage_id", "lag"), ("coefficient",), rows)
    if case.external:
        ids = ("stage_id", "scenario_id", "hydro_id")
        found["external_inflow_scenarios"] = _table(ids, ("value_m3s",), case.external)
    if case.external_load:
        ids = ("stage_id", "scenario_id", "bus_id")
        found["external_load_scenarios"] = _table(ids, ("value_mw",), case.external_load)
    if case.history:
        found["inflow_history"] = _history(case.history)
    return found


def _table(ids: Sequence[str], values: Sequence[str], rows: Sequence[tuple]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    types = [pa.int32()] * len(ids) + [pa.float64()] * len(values)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip([*ids, *values], arrays, strict=True)))


def _history(rows: Sequence[tuple[int, str, str, float]]) -> pa.Table:
    plants, starts, ends, values = zip(*rows, strict=True)
    days = [pa.array([date.fromisoformat(day) for day in column], pa.date32()) for column in (starts, ends)]
    return pa.table(
        {
            "hydro_id": pa.array(plants, pa.int32()),
            "start_date": days[0],
            "end_date": days[1],
            "value_m3s": pa.array(values, pa.float64()),
        }
    )
