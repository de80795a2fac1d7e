"""Tables of training for cobre-python's layout: bounds, and times as far as the run's log has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cobre.compat.stored_results import convergence_with_times
from cobre.compat.study_summaries import hydro_models_summary, provenance_report
from cobre.export.cobre_python.dictionaries import write_dictionaries
from cobre.export.cobre_python.writing import Program, copy_inside, write_json, write_table
from cobre.export.source import RunSource
from cobre.runs.files import CONVERGENCE_FILE, HYDRO_MODELS, MANIFEST_FILE, STOCHASTIC
from cobre.sddp.problem.prepared import PreparedStudy

TOTAL = "iteration"  # not a phase of cobre-python, so that the sum is not mistaken for one
PLANE_SOURCES = {"computed": "computed_from_geometry", "precomputed": "precomputed_hyperplanes"}
TIMES: Mapping[str, str] = {
    "forward_wall_ms": "forward_s",
    "backward_wall_ms": "backward_s",
    "lower_bound_ms": "bound_s",
    "cut_sync_ms": "exchange_s",  # states and cuts are measured together
}


def write_training(source: RunSource, study: PreparedStudy, folder: Path, program: Program) -> None:
    """Write the folder training/ of the layout."""
    facts = source.training
    bounds = convergence_with_times(source.folder)
    if more := program.more_columns.get("convergence", ""):  # no lazy solve of ours stops at a number of rounds
        bounds = bounds.append_column(more, [[0] * bounds.num_rows])
    write_table(folder / CONVERGENCE_FILE, "convergence", bounds, more)
    iterations = source.log.iterations
    write_table(folder / "timing" / "iterations.parquet", "iteration_timing", timing_columns(iterations))
    write_table(folder / "solver" / "iterations.parquet", "solver_iterations", solver_columns(iterations))
    write_table(folder / "solver" / "retry_histogram.parquet", "retry_histogram", {})
    write_dictionaries(study, folder / "dictionaries", program)
    inflow = provenance_report(study)
    production = inflow.pop("hydro_production")
    write_json(folder / "hydro_models.json", hydro_models(study, production))
    write_json(folder / "model_provenance.json", {"inflow": inflow, "hydro_production": production})
    write_json(folder / "metadata.json", facts)
    (folder / "_SUCCESS").touch()


def hydro_models(study: PreparedStudy, production: Mapping[str, int]) -> dict[str, Any]:
    """Plants by their models in the first stage."""
    first, numbers = study.case.horizon.stages[0], study.problem.stages[0].plan.data.hydro
    details, without_turbines = [], []
    for hydro, planes, most in zip(study.case.system.hydros, numbers.planes, numbers.max_turbined_m3s, strict=True):
        if planes is not None:
            config = study.case.production.choice_for(hydro, first).fpha_config
            source = PLANE_SOURCES[config.source] if config is not None else None
            details.append({"hydro_id": hydro.id, "name": hydro.name, "source": source, "n_planes": len(planes)})
        if not most.any():
            without_turbines.append(hydro.id)
    return hydro_models_summary(study) | {
        "fpha_details": details,
        "no_turbine_capacity": without_turbines,
        "n_user_supplied_ref": production["n_evaporation_ref_user_supplied"],
        "n_default_midpoint_ref": production["n_evaporation_ref_default_midpoint"],
    }


def copy_exports(source: RunSource, folder: Path) -> None:
    """Copy the files that the section `exports` of config.json asked for; cobre-python uses the same names."""
    for name in (STOCHASTIC, HYDRO_MODELS):
        for path in sorted((source.folder / name).glob("*.*")):
            if path.name != MANIFEST_FILE:
                (folder / name).mkdir(exist_ok=True)
                copy_inside(source.folder, f"{name}/{path.name}", folder / name / path.name)


def timing_columns(iterations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A row for each iteration, in milliseconds of rank 0; null where nothing is measured."""
    if not iterations:
        return {}
    columns: dict[str, Any] = {"iteration": [event["iteration"] for event in iterations], "rank": [0] * len(iterations)}
    columns |= {name: [_milliseconds(event.get(part)) for event in iterations] for name, part in TIMES.items()}
    columns["bwd_load_imbalance_ms"] = [_milliseconds((event.get("imbalance_s") or [0.0])[0]) for event in iterations]
    columns["overhead_ms"] = [_milliseconds(value) for value in _unexplained(iterations)]
    return columns


def _unexplained(iterations: Sequence[Mapping[str, Any]]) -> list[float]:
    """Seconds of each iteration that belong to none of the measured phases."""
    ends = [event.get("elapsed_s") or 0.0 for event in iterations]
    known = [sum(event.get(part) or 0.0 for part in TIMES.values()) for event in iterations]
    # The clock restarts when a run is resumed.
    lengths = [end - before if end > before else end for before, end in zip([0.0, *ends], ends, strict=False)]
    return [max(0.0, total - part) for total, part in zip(lengths, known, strict=True)]


def solver_columns(iterations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A row for each phase of each iteration: the LPs of all stages, openings and ranks."""
    rows = [(event["iteration"], phase, done) for event in iterations for phase, done in phases_of(event).items()]
    if not rows:
        return {}
    solves = [done["solves"] for _, _, done in rows]
    return {
        "iteration": [number for number, _, _ in rows],
        "phase": [phase for _, phase, _ in rows],
        "lp_solves": solves,
        "lp_successes": solves,  # a finished run has no failed LP
        "lp_failures": [0] * len(rows),
        "retry_attempts": [done.get("retries") for _, _, done in rows],
        "simplex_iterations": [done["pivots"] for _, _, done in rows],
        "solve_time_ms": [1000.0 * done["seconds"] for _, _, done in rows],
    }


def phases_of(event: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The solver's work by phase; logs of older versions have only the total of an iteration."""
    total = {"solves": event["solves"], "pivots": event["simplex_iterations"], "seconds": event.get("solver_s") or 0.0}
    return event.get("solver") or {TOTAL: total}


def _milliseconds(seconds: float | None) -> int:
    return round(1000.0 * (seconds or 0.0))
