"""Compatibility with cobre-python: `cobre.run.run`, a complete run in one call."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.core.bounds import relative_gap

if TYPE_CHECKING:
    from cobre.comm import BackendConfig
    from cobre.runs.summary import RunSummary
    from cobre.study.training.iteration_callback import IterationCallback

__all__ = ["run"]


def run(
    case_dir: str | Path,
    output_dir: str | Path | None = None,
    threads: int | None = None,
    config_overrides: Mapping[str, Any] | None = None,
    on_iteration: "IterationCallback | None" = None,
    *,
    num_workers: int | None = None,
    backend: "str | BackendConfig" = "auto",
    comm: Any = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Run a case, and return bounds, stop reason and times as a dictionary; files go to CASE/output by default.

    config_overrides: flat dotted keys, such as {"training.tree_seed": 7}.
    on_iteration: called with a dictionary after each iteration; a true value ends training with the next one.
    num_workers, backend, comm: as in `cobre.train`; without them this process does the work.
    overwrite: an earlier run in the output directory may be replaced; without it OutputError says what is there.

    Raises CaseIoError if there is no such case, and other errors of `cobre.errors`.
    """
    from cobre.compat.model_report import model_report
    from cobre.compat.study_object import Study, script_run
    from cobre.study.placement import WorldRequest

    world = WorldRequest(backend, num_workers, threads, comm)
    study_run = script_run(case_dir, output_dir, config_overrides, world, overwrite=overwrite)
    config = study_run.config
    if not config.is_trained and not config.is_simulated:
        study = Study(case_dir, output_dir, threads, config_overrides)
        return _untrained_outcome(study.output_dir) | study.facts
    began = time.monotonic()
    summary, report = study_run.start({}, on_iteration, model_report)
    elapsed_ms = int(1000 * (time.monotonic() - began))
    return _outcome(summary, str(study_run.output), elapsed_ms, has_trained=config.is_trained) | (report or {})


def _outcome(summary: "RunSummary", output_dir: str, elapsed_ms: int, *, has_trained: bool) -> dict[str, Any]:
    scenarios = summary.simulated_scenarios
    return {
        "converged": summary.stop_kind is not None and summary.stop_kind.has_converged,
        "iterations": summary.iterations if has_trained else 0,
        "lower_bound": summary.lower_bound,
        "upper_bound": summary.upper_bound,
        "gap_percent": None
        if summary.stop_kind is None or summary.lower_bound is None or summary.upper_bound is None
        else 100.0 * relative_gap(summary.lower_bound, summary.upper_bound),
        "total_time_ms": elapsed_ms,
        "output_dir": output_dir,
        "simulation": None if scenarios is None else {"n_scenarios": scenarios, "completed": scenarios},
    }


def _untrained_outcome(output_dir: str) -> dict[str, Any]:
    return {
        "converged": False,
        "iterations": 0,
        "lower_bound": 0.0,
        "upper_bound": None,
        "gap_percent": None,
        "total_time_ms": 0,
        "output_dir": output_dir,
        "simulation": None,
    }
