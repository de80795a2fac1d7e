"""An output directory read back: facts as plain values, tables with the columns that scripts know."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.io.output.results import read_results
from cobre.sddp.stop import StopKind
from cobre.study.events import EVENT_FILE, Event, read_events
from cobre.study.study_file import STUDY_FILE

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of other programs' tables that say nothing here: stages are the nodes of the policy graph, and no thermal
# plant is dispatched ahead of its delivery.
_CONSTANT_COLUMNS: Mapping[str, Mapping[str, object]] = {
    "costs": {"anticipated_thermal_cost": 0.0, "pumping_cost": 0.0},
    "thermals": {"is_anticipated": False, "anticipated_committed_mw": None, "anticipated_decision_mw": None},
}


def training_facts(folder: Path) -> dict[str, Any] | None:
    """How training went; None when it has not come to its end."""
    events = _events(folder)
    finished = _last(events, "training_finished")
    if finished is None:
        return None
    started = _last(events, "run_started") or {}
    study = _json(folder / STUDY_FILE)
    training = study.get("config", {}).get("training", {})
    entities = study.get("entities", {})
    return {
        "status": "complete",
        **_who_and_when(started, finished, study),
        "duration_seconds": finished["training_seconds"],
        "bounds": {
            "final_lower_bound": finished["lower_bound"],
            "final_upper_bound": finished["upper_bound"],
            "final_upper_bound_kind": "statistical",
        },
        "convergence": {
            "achieved": StopKind(finished["stop_kind"]).has_converged,
            "final_gap_percent": 100.0 * finished["gap"],
            "termination_reason": finished["stop_kind"],
            "reason": finished["stop_reason"],
        },
        "iterations": {"completed": finished["iterations"]},
        "configuration": {
            "forward_passes": training.get("forward_passes"),
            "seed": training.get("tree_seed"),
            "stopping_mode": training.get("stopping_mode"),
        },
        "problem_dimensions": {
            "num_stages": len(study.get("stages", ())),
            **{f"num_{name}": len(entities.get(name, ())) for name in ("hydros", "thermals", "buses", "lines")},
        },
        "digest": finished["digest"],
    }


def simulation_facts(folder: Path) -> dict[str, Any] | None:
    """How the simulation went; None when there is none."""
    events = _events(folder)
    finished = _last(events, "simulation_finished")
    if finished is None or not (folder / "simulation").is_dir():
        return None
    started = _last(events, "run_started") or {}
    return {
        "status": "complete",
        **_who_and_when(started, finished, _json(folder / STUDY_FILE)),
        "duration_seconds": finished["seconds"],
        "scenarios": {"total": finished["scenarios"], "completed": finished["scenarios"], "failed": 0},
        "cost": {"mean_cost": finished["mean_cost"], "std_cost": finished["std_cost"]},
        "digest": finished["digest"],
    }


def _who_and_when(started: Event, finished: Event, study: Mapping[str, Any]) -> dict[str, Any]:
    versions = study.get("versions", {})
    return {
        "software": "cobre",
        "software_version": versions.get("cobre"),
        "solver": "highs",
        "solver_version": versions.get("highspy"),
        "hostname": started.get("host"),
        "started_at": _instant(started.get("time")),
        "completed_at": _instant(finished["time"]),
        "distribution": {
            "backend": started.get("backend"),
            "world_size": started.get("ranks"),
            "ranks_participated": started.get("ranks"),
            "threads_per_rank": started.get("threads"),
        },
    }


def convergence_with_times(folder: Path) -> "pa.Table":
    """training/convergence.parquet with counts over all stages, and with times as far as the log has them.

    How many cuts are active is known only where no selection puts any aside; elsewhere it is null.
    """
    import pyarrow as pa

    table = read_results(folder / "training")["convergence"]
    study = _json(folder / STUDY_FILE)
    stages = max(1, len(study.get("stages", ())) - 1)
    total = stages * table["cuts"].to_numpy()
    selects = study.get("config", {}).get("training", {}).get("cut_selection", {}).get("method") is not None
    unknown = pa.nulls(table.num_rows, pa.int64())
    columns = {
        "cuts_added": pa.array(np.diff(total, prepend=0), pa.int64()),
        "cuts_removed": unknown if selects else pa.array(np.zeros_like(total), pa.int64()),
        "cuts_active": unknown if selects else pa.array(total, pa.int64()),
        **_times(_events(folder), table["iteration"].to_pylist()),
    }
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table


def _times(events: Sequence[Event], iterations: Sequence[int]) -> "dict[str, pa.Array]":
    """Milliseconds of each iteration; a run that was resumed tells an iteration again, and the last word counts."""
    import pyarrow as pa

    told = {event["iteration"]: event for event in events if event["event"] == "iteration"}
    found = [told.get(number, {}) for number in iterations]
    parts: dict[str, tuple[str, ...]] = {
        "time_forward_ms": ("forward_s",),
        "time_backward_ms": ("backward_s",),
        "time_total_ms": ("forward_s", "backward_s", "bound_s", "exchange_s"),
    }
    return {
        name: pa.array([_milliseconds([event.get(part) for part in summed]) for event in found], pa.int64())
        for name, summed in parts.items()
    }


def _milliseconds(parts: Sequence[float | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return round(1000.0 * sum(known)) if len(known) == len(parts) else None


def simulation_tables(folder: Path) -> "dict[str, pa.Table]":
    """All tables, checked against the manifest; raises ResultsError when they are not whole."""
    return {name: _with_known_columns(name, table) for name, table in read_results(folder).items()}


def _with_known_columns(name: str, table: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    place = table.schema.names.index("stage_id") + 1
    table = table.add_column(place, "node_id", table["stage_id"])
    if name == "hydros":
        table = _with_slopes(table)
    for column, value in _CONSTANT_COLUMNS.get(name, {}).items():
        kind = pa.bool_() if isinstance(value, bool) else pa.float64()
        table = table.append_column(column, pa.repeat(pa.scalar(value, kind), table.num_rows))
    return table


def _with_slopes(table: "pa.Table") -> "pa.Table":
    """Scripts know the water value as the slope of the cost, which falls with more water; files have its worth."""
    from pyarrow import compute

    place = table.schema.names.index("water_value_per_hm3")
    return table.set_column(place, "water_value_per_hm3", compute.negate(table["water_value_per_hm3"]))


def openings_of(path: Path, stage_id: int) -> NDArray[np.float64]:
    """Openings x entities of a stage."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    rows = table.filter(table["stage_id"].to_numpy() == stage_id)
    if not rows.num_rows:
        known = sorted(set(table["stage_id"].to_pylist()))
        raise IndexError(f"there is no stage {stage_id}; the stages are {known[0]} to {known[-1]}")
    opening, entity = (rows[name].to_numpy().astype(np.int64) for name in ("opening_index", "entity_index"))
    values = np.zeros((int(opening.max()) + 1, int(entity.max()) + 1))
    values[opening, entity] = rows["value"].to_numpy()
    return values


def _events(folder: Path) -> list[Event]:
    return read_events(folder) if (folder / EVENT_FILE).exists() else []


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event["event"] == kind), None)


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _instant(time_s: float | None) -> str | None:
    return None if time_s is None else datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
