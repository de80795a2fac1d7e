"""study.json: what a reader of results needs to know without the case: names, dates, settings, versions."""

import math
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.temporal import Stage
from cobre.io.case_folder.case_digests import file_digests
from cobre.io.input_files.conversion_manifest import read_conversion
from cobre.io.output.manifest import software_versions
from cobre.io.policies.policy_source import lag_records
from cobre.io.saving.config_document import config_document
from cobre.io.storage.stored_json import write_json
from cobre.runs.files import STUDY_FILE
from cobre.stochastic.par.seasons import season_cycle
from cobre.study.preparation.ready_study import ReadyStudy
from cobre.study.requests import CaseRequest
from cobre.study.results.study_description import plain, stages_and_entities


def write_study_file(output: Path, ready: ReadyStudy, request: CaseRequest) -> None:
    """Write study.json, whole or not at all."""
    write_json(output / STUDY_FILE, study_facts(ready, request))


def study_facts(ready: ReadyStudy, request: CaseRequest) -> dict[str, Any]:
    """The content of study.json: the case, its settings, digests and versions."""
    case = ready.study.case
    source = request.case
    return {
        "format_version": 1,
        "name": case.name,
        "case": str(source.absolute()) if isinstance(source, Path) else "",
        "case_files": file_digests(source) if isinstance(source, Path) else {},
        "config_overrides": plain(dict(request.overrides or {})),
        "problem": ready.study.digest,
        **stages_and_entities(case),
        "line_limits": _line_limits(ready),
        "config": config_document(case.config, case.format_version),
        "is_risk_averse": case.is_risk_averse,
        "method": _method(case),
        "versions": software_versions() | {"solver": ready.solver.version},
        "warnings": list(ready.warnings),
        **_past_inflows(ready),
        **_origin(source),
    }


def _method(case: Case) -> dict[str, Any]:
    """What defines the problem beside config.json: openings, risk measure and discount, as ranges of stages."""
    stages = case.horizon.stages
    return {
        "annual_discount_rate": case.horizon.policy_graph.annual_discount_rate,
        "discount_by_stage": _ranges((stage.id, stage.annual_discount_rate_override) for stage in stages),
        "openings": _ranges((stage.id, stage.num_openings) for stage in stages),
        "risk_measure": _ranges((stage.id, _risk(stage)) for stage in stages),
        "sampling_method": _ranges((stage.id, stage.sampling_method) for stage in stages),
        "forward_passes": None if case.config.training.is_enumerated else case.config.training.forward_passes,
        "tree_seed": case.config.training.tree_seed,
        "simulation_seed": None
        if case.config.simulation.scenario_source is None
        else case.config.simulation.scenario_source.seed,
    }


def _risk(stage: Stage) -> dict[str, float] | str:
    if stage.risk is None or stage.risk.is_expectation:
        return "expectation"
    return {"alpha": stage.risk.alpha, "lambda": stage.risk.lambda_}


def _ranges(values: Iterable[tuple[int, Any]]) -> list[dict[str, Any]]:
    """Runs of stages that have the same value; stages without one are left out."""
    found: list[dict[str, Any]] = []
    for value, run in groupby(values, key=itemgetter(1)):
        ids = [stage for stage, _ in run]
        if value is not None:
            found.append({"first_stage": ids[0], "last_stage": ids[-1], "value": value})
    return found


def _past_inflows(ready: ReadyStudy) -> dict[str, Any]:
    """Inflows before the study, which a study that ends on this one's policy may not know."""
    horizon, noise = ready.study.case.horizon, ready.study.noise
    if horizon.season_definitions is None or noise.lag_steps is not None or not len(noise.initial_lags):
        return {}
    periods = season_cycle(horizon).past_periods(horizon.stages[0].start_date, len(noise.initial_lags))
    return {"inflow_lags": lag_records(periods, noise.initial_lags)}


def _origin(source: object) -> dict[str, Any]:
    """What a case was converted from, where it was."""
    conversion = read_conversion(source) if isinstance(source, Path) else None
    return {} if conversion is None else {"conversion": conversion}


def _line_limits(ready: ReadyStudy) -> list[dict[str, Any]]:
    """The most that flows each way in MW, line by line, stage by stage, block by block."""
    numbers = [lp.plan.data.line for lp in ready.study.problem.stages]
    return [
        {
            "id": line.id,
            "direct_mw": [_finite(stage.direct_mw[index]) for stage in numbers],
            "reverse_mw": [_finite(stage.reverse_mw[index]) for stage in numbers],
        }
        for index, line in enumerate(ready.study.case.system.lines)
    ]


def _finite(values: Floats) -> list[float | None]:
    """JSON knows no infinity: what has no limit is null."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
