"""How training and simulation of an output directory went, as plain values; what is not counted here is None."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.io.output.results import read_results
from cobre.runs.events import Event
from cobre.runs.files import CONVERGENCE, SIMULATION, TRAINING
from cobre.runs.stored import iteration_limit, logged_run, stored_study
from cobre.runs.view import RunView
from cobre.sddp.records.stop import StopKind

if TYPE_CHECKING:
    import pyarrow as pa

_SETUP = ("broadcast", "evaporation_fit", "load", "production_fit", "stochastic_fit")


def training_facts(folder: Path) -> dict[str, Any] | None:
    """How training went; None when it has not come to its end."""
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
            "final_gap_percent": 100.0 * finished["gap"],
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
        "solve_stats": _training_solves(table, log),
        "setup": {f"{part}_seconds": None for part in _SETUP},
        "digest": finished["digest"],
    }


def simulation_facts(folder: Path) -> dict[str, Any] | None:
    """How the simulation went; None when there is none."""
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
    """Cuts of all stages; which of them a solve loads is not counted."""
    slots = sum(table["forward_passes"].to_pylist())
    known = table["cuts_active"].to_pylist() if "cuts_active" in table.column_names else [None]
    peak = None if None in known else max(known)
    return {
        "total_generated": slots * max(0, len(study.get("stages", ())) - 1),
        "total_loaded": 0 if table["cuts"][-1].as_py() == slots else None,
        "total_active": known[-1],
        "cuts_active": known[-1],
        "peak_active": peak,
        "rows_in_lp_total": None,
        "rows_in_lp_solve_count": None,
        "rows_in_lp_max": None,
    }


def _training_solves(table: "pa.Table", log: RunView) -> dict[str, Any]:
    found = _solves(sum(table["lp_solves"].to_pylist()), log)
    return found | {"forward_solve_seconds": None, "backward_solve_seconds": None}


def _solves(total: int, log: RunView) -> dict[str, Any]:
    """A run that came to its end has no LP that failed."""
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
    """Hosts of the run with the ranks on each."""
    workers = (log.trained or {}).get("workers") or [{"host": log.started.get("host"), "rank": 0}]
    ranks: dict[Any, list[int]] = {}
    for worker in workers:
        ranks.setdefault(worker["host"], []).append(worker["rank"])
    return [{"hostname": host, "ranks": found} for host, found in ranks.items()]


def instant(time_s: float | None) -> str | None:
    """Seconds since 1970 as an ISO time."""
    return None if time_s is None else datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
