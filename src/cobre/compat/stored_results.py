"""Tables of an output directory read back, with the columns that scripts know."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.compat.simulation_columns import needed_for, with_known_columns
from cobre.core.file_names import CONVERGENCE, SIMULATION, TRAINING
from cobre.core.stopping import StopKind
from cobre.io.output.results import read_results
from cobre.runs.content import iteration_limit, logged_run, stored_study
from cobre.runs.events import Event
from cobre.runs.view import RunView

if TYPE_CHECKING:
    import pyarrow as pa


CONVERGENCE_COLUMNS = (
    "iteration",
    "lower_bound",
    "upper_bound",
    "upper_bound_std",
    "upper_bound_kind",
    "gap_percent",
    "cuts_added",
    "cuts_removed",
    "cuts_active",
    "time_forward_ms",
    "time_backward_ms",
    "time_total_ms",
    "forward_passes",
    "lp_solves",
    "mean_rows_in_lp",
)


def convergence_with_times(folder: Path) -> "pa.Table":
    """Read training/convergence.parquet, with counts over all stages, and times as far as the log has them."""
    import pyarrow as pa

    table = read_results(folder / TRAINING)[CONVERGENCE]
    study = stored_study(folder)
    stages = max(1, len(study.get("stages", ())) - 1)
    added = stages * table["forward_passes"].to_numpy().astype(np.int64)
    columns = {
        "cuts_added": pa.array(added, pa.int32()),
        **_active_cuts(table, added),
        **_times(logged_run(folder).iterations, table["iteration"].to_pylist()),
        # Which cuts a lazy solve loads is the solver's own business here, and not counted.
        "mean_rows_in_lp": _constant(None if _is_lazy(study) else 0.0, table.num_rows),
    }
    other_columns = [name for name in table.column_names if name not in CONVERGENCE_COLUMNS]
    columns = {name: table[name] for name in table.column_names} | columns
    return pa.table({name: columns[name] for name in (*CONVERGENCE_COLUMNS, *other_columns)})


def _active_cuts(table: "pa.Table", added: NDArray[np.int64]) -> "dict[str, pa.Array]":
    """Return active cuts at the end of each iteration; null where cuts loaded from elsewhere make the count unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    active = table["cuts_active"].combine_chunks()
    began_empty = table["cuts"][0].as_py() == table["forward_passes"][0].as_py()
    before = pa.concat_arrays([pa.array([0 if began_empty else None], pa.int64()), active[:-1]])
    removed = pc.subtract(pc.add(before, pa.array(added, pa.int64())), active)
    return {"cuts_removed": removed.cast(pa.int32()), "cuts_active": active}


def _is_lazy(study: Mapping[str, Any]) -> bool:
    settings = study.get("config", {}).get("training", {}).get("cut_selection", {})
    return bool(settings.get("selection", {}).get("method") == "dynamic")


def _constant(value: float | None, count: int) -> "pa.Array":
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, pa.float64()), count)


def _times(events: Sequence[Event], iterations: Sequence[int]) -> "dict[str, pa.Array]":
    """Return milliseconds of each iteration, from its event; null if the log has none."""
    import pyarrow as pa

    by_iteration = {event["iteration"]: event for event in events}
    matching_events = [by_iteration.get(number, {}) for number in iterations]
    parts: dict[str, tuple[str, ...]] = {
        "time_forward_ms": ("forward_s",),
        "time_backward_ms": ("backward_s",),
        "time_total_ms": ("forward_s", "backward_s", "bound_s", "exchange_s"),
    }
    return {
        name: pa.array([_milliseconds([event.get(part) for part in summed]) for event in matching_events], pa.int64())
        for name, summed in parts.items()
    }


def _milliseconds(parts: Sequence[float | None]) -> int | None:
    values = [part for part in parts if part is not None]
    return round(1000.0 * sum(values)) if len(values) == len(parts) else None


def simulation_tables(folder: Path, only: str | None = None) -> "dict[str, pa.Table]":
    """Read all tables, or one if it exists, checked against the manifest. Raises ResultsError."""
    return with_known_columns(read_results(folder, None if only is None else needed_for(only)))


def openings_of(folder: Path, stage_id: int) -> NDArray[np.float64]:
    """Read the openings of a stage: openings x entities with noise. Raises ResultsError for a damaged file."""
    table = read_results(folder, ["noise_openings"])["noise_openings"]
    rows = table.filter(table["stage_id"].to_numpy() == stage_id)
    if not rows.num_rows:
        stage_ids = sorted(set(table["stage_id"].to_pylist()))
        hint = f"the stages are {stage_ids[0]} to {stage_ids[-1]}" if stage_ids else "this study has no noise"
        raise IndexError(f"there is no stage {stage_id}: {hint}")
    opening, entity = (rows[name].to_numpy().astype(np.int64) for name in ("opening_index", "entity_index"))
    values = np.zeros((int(opening.max()) + 1, int(entity.max()) + 1))
    values[opening, entity] = rows["value"].to_numpy()
    return values


def coefficients_of(folder: Path) -> NDArray[np.float64]:
    """Return rows of hydro_id, stage_id, lag and coefficient. Raises ResultsError for a damaged file."""
    table = read_results(folder, ["inflow_ar_coefficients"])["inflow_ar_coefficients"]
    columns = [table[name].to_numpy().astype(np.float64) for name in ("hydro_id", "stage_id", "lag", "coefficient")]
    return np.column_stack(columns)


# How training and simulation of an output directory went, as plain values; what is not counted here is None.

_SETUP = ("broadcast", "evaporation_fit", "load", "production_fit", "stochastic_fit")


def training_facts(folder: Path) -> dict[str, Any] | None:
    """Describe the training; None when it has not ended."""
    log = logged_run(folder)
    finished = log.trained
    if finished is None:
        return None
    study = stored_study(folder)
    has_converged = StopKind(finished["stop_kind"]).has_converged
    table = read_results(folder / TRAINING)[CONVERGENCE]
    return {
        "status": "complete",
        **_provenance(log, finished, study),
        "duration_seconds": finished["training_seconds"],
        "bounds": {
            "final_lower_bound": finished["lower_bound"],
            "final_upper_bound": finished["upper_bound"],
            "final_upper_bound_std": table["upper_bound_std"][-1].as_py(),
            "final_upper_bound_kind": table["upper_bound_kind"][-1].as_py(),
        },
        "convergence": {
            "achieved": has_converged,
            "final_gap_percent": table["gap_percent"][-1].as_py(),
            "termination_reason": finished["stop_kind"],
            "reason": finished["stop_reason"],
        },
        "iterations": {
            "completed": finished["iterations"],
            "converged_at": finished["iterations"] if has_converged else None,
        },
        "configuration": _configuration(study.get("config", {})),
        "problem_dimensions": _dimensions(study),
        "row_pool": _row_pool(table, study),
        "solve_stats": _solves(sum(table["lp_solves"].to_pylist()), log)
        | {"forward_solve_seconds": None, "backward_solve_seconds": None},
        "setup": {f"{part}_seconds": None for part in _SETUP},
        "digest": finished["digest"],
    }


def simulation_facts(folder: Path) -> dict[str, Any] | None:
    """Describe the simulation; None if there is none."""
    log = logged_run(folder)
    finished = log.simulated
    if finished is None or not (folder / SIMULATION).is_dir():
        return None
    study = stored_study(folder)
    solves = finished["scenarios"] * len(study.get("stages", ()))
    return {
        "status": "complete",
        **_provenance(log, finished, study),
        "duration_seconds": finished["seconds"],
        "scenarios": {"total": finished["scenarios"], "completed": finished["scenarios"], "failed": 0},
        "cost": {"mean_cost": finished["mean_cost"], "std_cost": finished["std_cost"]},
        "solve_stats": _solves(solves, log) | {"solve_seconds": None},
        "digest": finished["digest"],
    }


def _configuration(config: Mapping[str, Any]) -> dict[str, Any]:
    training = config.get("training", {})
    return {
        "forward_passes": training.get("selection", {}).get("forward_passes", 1),
        "max_iterations": iteration_limit(config),
        "policy_mode": config.get("policy", {}).get("mode"),
        "seed": training.get("tree_seed"),
        "stopping_mode": training.get("stopping_mode"),
    }


def _dimensions(study: Mapping[str, Any]) -> dict[str, int]:
    entities = study.get("entities", {})
    counts = {f"num_{name}": len(entities.get(name, ())) for name in ("hydros", "thermals", "buses", "lines")}
    return {"num_stages": len(study.get("stages", ())), **counts}


def _row_pool(table: "pa.Table", study: Mapping[str, Any]) -> dict[str, int | None]:
    """Return cuts of all stages; which of them a solve loads is not counted."""
    slots = sum(table["forward_passes"].to_pylist())
    active = table["cuts_active"].to_pylist()
    return {
        "total_generated": slots * max(0, len(study.get("stages", ())) - 1),
        "total_loaded": 0 if table["cuts"][-1].as_py() == slots else None,
        "total_active": active[-1],
        "cuts_active": active[-1],
        "peak_active": max(active),
        "rows_in_lp_total": None,
        "rows_in_lp_solve_count": None,
        "rows_in_lp_max": None,
    }


def _solves(total: int, log: RunView) -> dict[str, Any]:
    """Count the solves of a run; one that finished has no failed LP."""
    parallelism = log.started.get("ranks", 1) * (log.started.get("threads") or 1)
    return {
        "total_lp_solves": total,
        "first_try": None,
        "retried": None,
        "failed": 0,
        "parallelism": parallelism,
    }


def _provenance(log: RunView, finished: Event, study: Mapping[str, Any]) -> dict[str, Any]:
    started, versions = log.started, study.get("versions", {})
    hosts = _hosts(log)
    return {
        "software": "cobre",
        "software_version": versions.get("cobre"),
        "solver": "highs",
        "solver_version": versions.get("highspy"),
        "hostname": started.get("host"),
        "started_at": instant(started.get("time")),
        "completed_at": instant(finished["time"]),
        "distribution": {
            "backend": started.get("backend"),
            "world_size": started.get("ranks"),
            "ranks_participated": started.get("ranks"),
            "num_hosts": len(hosts),
            "threads_per_rank": started.get("threads"),
            "hosts": hosts,
        },
    }


def _hosts(log: RunView) -> list[dict[str, Any]]:
    workers = (log.trained or {}).get("workers") or [{"host": log.started.get("host"), "rank": 0}]
    ranks: dict[Any, list[int]] = {}
    for worker in workers:
        ranks.setdefault(worker["host"], []).append(worker["rank"])
    return [{"hostname": host, "ranks": ranks_of_host} for host, ranks_of_host in ranks.items()]


def instant(time_s: float | None) -> str | None:
    """Return seconds since 1970 as an ISO time."""
    return None if time_s is None else datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
