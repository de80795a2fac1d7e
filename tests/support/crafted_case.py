"""Small cases with custom calendars and policy graphs: thermal plants and a few reservoirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import small_cases
from small_cases import SmallCase, hydro, penalties, rows_of, thermal, volumes


@dataclass(frozen=True)
class Period:
    """A stage. openings: None if the file does not say."""

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
    """Parts of a case; keys of the tables are (plant, stage)."""

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
    loads: Mapping[int, float] = field(default_factory=dict)  # MW by stage, if not the usual one
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
    """Write all files of the case into the folder."""
    plants = range(case.plants)
    files = SmallCase(
        hydros=[
            hydro(
                plant,
                downstream=plant + 1 if plant + 1 < case.plants else None,
                storage=(0.0, case.max_hm3),
                turbined=(0.0, 120.0),
                power=(0.0, 120.0),
            )
            for plant in plants
        ],
        thermals=[thermal(0, 40.0, 40.0), thermal(1, 110.0, 60.0), thermal(2, 300.0, 60.0)],
        productivity=dict.fromkeys(plants, 0.8),
        documents={
            "config.json": _config(case),
            "stages.json": _stages(case),
            "initial_conditions.json": _initial(case),
            "penalties.json": PENALTIES,
        },
        tables=_tables(case),
    )
    return files.write(folder)


def months(label: str = "monthly") -> dict:
    """Return twelve seasons, as months or as custom seasons that equal them."""
    last = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    seasons = small_cases.months()["seasons"]
    if label == "custom":
        seasons = [
            season | {"day_start": 1, "month_end": m + 1, "day_end": last[m]} for m, season in enumerate(seasons)
        ]
    return {"cycle_type": label, "seasons": seasons}


def quarters(first_id: int = 0) -> list[dict]:
    """Return four custom seasons."""
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
    """Return 52 weekly seasons."""
    return {
        "cycle_type": "weekly",
        "seasons": [{"id": w, "label": f"week {w + 1}", "month_start": min(12, 1 + w // 4)} for w in range(52)],
    }


PENALTIES = penalties(
    {
        "spillage_cost": 0.01,
        "turbined_cost": 0.0,
        "diversion_cost": 0.1,
        "storage_violation_below_cost": 1000.0,
        "filling_target_violation_cost": 1000.0,
        "evaporation_violation_cost": 1000.0,
        "water_withdrawal_violation_cost": 1000.0,
    },
    others=500.0,
    deficit=5000.0,
    excess=0.01,
    line=0.01,
    source=1.0,
)


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
        "storage": volumes(dict.fromkeys(range(case.plants), case.first_hm3)),
        "filling_storage": [],
        "recent_observations": [dict(zip(names, row, strict=True)) for row in case.observed],
    }


def _tables(case: CraftedCase) -> dict[str, Any]:
    """Return all tables by path; those that the case does not need are empty."""
    day = date.fromisoformat
    history = [(plant, day(start), day(end), value) for plant, start, end, value in case.history]
    given: dict[str, tuple[str, Sequence[tuple[Any, ...]]]] = {
        "load_seasonal_stats": (
            "bus_id stage_id mean_mw std_mw",
            [(0, stage, case.loads.get(stage, case.load_mw), case.load_std) for stage in range(len(case.periods))],
        ),
        "inflow_seasonal_stats": (
            "hydro_id stage_id mean_m3s std_m3s",
            [(*key, *value) for key, value in case.inflow.items()],
        ),
        "inflow_ar_coefficients": (
            "hydro_id stage_id lag coefficient",
            [(*key, value) for key, value in case.memory.items()],
        ),
        "external_inflow_scenarios": ("stage_id scenario_id hydro_id value_m3s", case.external),
        "external_load_scenarios": ("stage_id scenario_id bus_id value_mw", case.external_load),
        "inflow_history": ("hydro_id start_date end_date value_m3s", history),
    }
    return {f"scenarios/{name}": rows_of(names, rows) if rows else {} for name, (names, rows) in given.items()}
