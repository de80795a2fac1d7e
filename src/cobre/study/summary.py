"""The content of summary.json and study.json."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from cobre.core.arrays import Floats
from cobre.core.bounds import gap_scale
from cobre.core.case import Case
from cobre.core.temporal import Stage
from cobre.core.verdict import verdict
from cobre.io.case_folder.case_files import file_digests, read_conversion
from cobre.io.output.results import software_versions
from cobre.io.policies.policy_source import lag_records
from cobre.io.saving.documents import config_document
from cobre.policy.object import Policy
from cobre.runs.events import Event, new_event
from cobre.runs.summary import RunSummary
from cobre.sddp.records import Phase, PhaseStatistics, added, as_dict
from cobre.sddp.training.context import least_traffic, total_traffic
from cobre.stochastic.par.seasons import season_cycle
from cobre.study.preparation.study_cache import ReadyStudy
from cobre.study.requests import CaseRequest
from cobre.study.results import SimulationResult, plain, stages_and_entities
from cobre.study.training import TrainedStudy
from cobre.wording import counted, percent

MIN_COMPARED = 30
"""Scenarios from which on the interval of their mean is compared with that of the policy's cost."""


def summarize_run(
    ready: ReadyStudy, source: TrainedStudy | Policy, simulation: SimulationResult | None, output: str
) -> RunSummary:
    """Build the summary. source: the trained study, or the stored policy that was used instead."""
    if isinstance(source, TrainedStudy):
        pool = source.context.pool
        summary, pool_bytes, pool_saved = _training_summary(source, output), pool.nbytes, pool.saved_bytes
    else:
        summary, pool_bytes, pool_saved = _stored_policy_summary(source, output), 0, 0
        summary = replace(summary, upper_bound_is_exact=ready.study.case.config.training.is_enumerated)
    if simulation is not None:
        summary = replace(summary, **simulation_numbers(simulation))
        summary = replace(summary, simulation_note=_simulation_note(ready, summary, simulation))
    return replace(
        summary,
        is_risk_averse=ready.study.is_risk_averse,
        lower_bound_is_valid=ready.study.problem.is_convex,
        shared_bytes=ready.shared_bytes + pool_bytes,
        saved_bytes=ready.saved_bytes + pool_saved,
        solver=as_dict(_solver_work(source, simulation)),
    )


def _training_summary(trained: TrainedStudy, output: str) -> RunSummary:
    last = trained.history[-1]
    history = trained.bounds
    computed = history.computed
    judged = verdict(history, is_interrupted=trained.stop.kind.is_interruption)
    traffic = total_traffic(record.traffic_bytes for record in trained.history)
    return RunSummary(
        lower_bound=last.lower_bound,
        upper_bound=last.upper_bound,
        upper_bound_half_width=last.half_width,
        upper_bound_is_exact=last.is_exact,
        verdict=None if judged is None else judged.sentence,
        verdict_kind=None if judged is None else judged.kind,
        gap=history.gap,
        gap_at_most=None if computed is None or computed.is_estimate or not computed.confidence else computed.end_gap,
        overstated=None if last.trial_points is None else last.trial_points.overstated,
        iterations=last.iteration,
        is_interrupted=trained.stop.kind.is_interruption,
        output=output,
        workers=trained.workers,
        traffic_bytes=traffic,
        traffic_least_bytes=least_traffic(traffic),
        **trained.end,
    )


def _stored_policy_summary(policy: Policy, output: str) -> RunSummary:
    return RunSummary(
        lower_bound=policy.final_lower_bound,
        upper_bound=policy.final_upper_bound,
        upper_bound_half_width=None,
        gap=None,
        iterations=policy.iterations,
        stop_reason="a stored policy was used",
        stop_kind=None,
        is_interrupted=False,
        digest="",
        training_seconds=0.0,
        output=output,
    )


def simulation_numbers(simulation: SimulationResult) -> dict[str, Any]:
    """Return the fields of the summary that come from a simulation."""
    return {
        "simulated_scenarios": len(simulation.scenario_costs),
        "simulated_mean_cost": simulation.mean_cost,
        "simulated_std_cost": simulation.std_cost,
        "simulated_half_width": simulation.half_width,
        "simulated_controlled_mean_cost": simulation.controlled_mean_cost,
        "simulated_controlled_half_width": simulation.controlled_half_width,
        "simulation_digest": simulation.digest,
    }


def simulation_event(simulation: SimulationResult) -> Event:
    """Create the event of the end of a simulation."""
    return new_event(
        "simulation_finished",
        scenarios=len(simulation.scenario_costs),
        mean_cost=simulation.mean_cost,
        std_cost=simulation.std_cost,
        half_width=simulation.half_width,
        controlled_mean_cost=simulation.controlled_mean_cost,
        controlled_half_width=simulation.controlled_half_width,
        digest=simulation.digest,
        seconds=simulation.seconds,
        solver=simulation.solver.as_dict(),
    )


def _simulation_note(ready: ReadyStudy, summary: RunSummary, simulation: SimulationResult) -> str | None:
    """Explain why simulated scenarios differ in cost from the policy, where chance does not.

    Under a risk measure the two are different things, and differ always.
    """
    cost, half_width, mean = summary.policy_cost, summary.policy_cost_half_width, simulation.mean_cost
    if cost is None or half_width is None or not ready.study.problem.is_risk_neutral:
        return None
    chance = math.hypot(half_width, simulation.half_width)
    if len(simulation.scenario_costs) < MIN_COMPARED or abs(mean - cost) <= chance:
        return None
    return (
        f"the mean of {counted(len(simulation.scenario_costs), 'simulated scenario')} is {_offset(mean, cost)} the "
        f"cost of the policy over its openings, more than the 95 % intervals of both explain "
        f"({percent(chance / gap_scale(cost))}): {_reason(ready, simulation, cost, half_width)}"
    )


def _reason(ready: ReadyStudy, simulation: SimulationResult, cost: float, half_width: float) -> str:
    """Explain the difference from the settings and the controlled mean."""
    config = ready.study.case.config
    source = config.simulation.scenario_source or config.training.scenario_source
    mean, its_half_width = simulation.controlled_mean_cost, simulation.controlled_half_width
    if not source.is_in_sample:
        return (
            "scenarios are not drawn from the openings of training, and the policy knows these alone; more openings "
            "bring the two together"
        )
    if mean is None or its_half_width is None:
        return "scenarios are drawn from the same openings, but few of them bear most of the spread; simulate more"
    if abs(mean - cost) <= math.hypot(half_width, its_half_width):
        luck = "dearer" if simulation.mean_cost > cost else "cheaper"
        return (
            f"chance drew {luck} openings than the average; controlled for the openings drawn the mean is "
            f"{percent(abs(mean - cost) / gap_scale(cost))} from that cost, which the intervals explain"
        )
    cuts = "" if config.simulation.cut_set == "all" else "; the simulation uses active cuts alone, another policy"
    return (
        f"the openings that they drew do not explain it, controlled for them the mean is still {_offset(mean, cost)} "
        f"it{cuts}. Rare scenarios far dearer than the rest do that: simulate more of them, or train longer"
    )


def _offset(mean: float, cost: float) -> str:
    return f"{percent(abs(mean - cost) / gap_scale(cost))} {'above' if mean > cost else 'below'}"


def _solver_work(source: TrainedStudy | Policy, simulation: SimulationResult | None) -> PhaseStatistics:
    """Sum the work of all ranks' solvers in the whole run, by phase."""
    history = source.history if isinstance(source, TrainedStudy) else ()
    parts: list[PhaseStatistics] = [record.solver for record in history]
    if simulation is not None:
        parts.append({Phase.SIMULATION: simulation.solver})
    return added(parts)


# study.json: what a reader of results needs to know without the case: names, dates, settings, versions.


def study_facts(ready: ReadyStudy, request: CaseRequest) -> dict[str, Any]:
    """Return the content of study.json: the case, its settings, digests and versions."""
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
        "config": config_document(case.config),
        "is_risk_averse": ready.study.is_risk_averse,
        "method": _method(case),
        "versions": software_versions() | {"solver": ready.solver.version},
        "warnings": list(ready.warnings),
        **_past_inflows(ready),
        **_origin(source),
    }


def _method(case: Case) -> dict[str, Any]:
    """Return what defines the problem beside config.json: openings, risk measure and discount, by ranges of stages."""
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
    """Group consecutive stages that have the same value; stages without one are left out."""
    found: list[dict[str, Any]] = []
    for value, run in groupby(values, key=itemgetter(1)):
        ids = [stage for stage, _ in run]
        if value is not None:
            found.append({"first_stage": ids[0], "last_stage": ids[-1], "value": value})
    return found


def _past_inflows(ready: ReadyStudy) -> dict[str, Any]:
    """Return inflows before the study, which a study that ends on this one's policy may need."""
    horizon, noise = ready.study.case.horizon, ready.study.noise
    if horizon.season_definitions is None or noise.lag_steps is not None or not len(noise.initial_lags):
        return {}
    periods = season_cycle(horizon).past_periods(horizon.stages[0].start_date, len(noise.initial_lags))
    return {"inflow_lags": lag_records(periods, noise.initial_lags)}


def _origin(source: object) -> dict[str, Any]:
    """Return what a case was converted from, if it was."""
    conversion = read_conversion(source) if isinstance(source, Path) else None
    return {} if conversion is None else {"conversion": conversion}


def _line_limits(ready: ReadyStudy) -> list[dict[str, Any]]:
    """Return the largest flow each way in MW, line by line, stage by stage, block by block."""
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
    """Replace infinite numbers, which JSON does not know, by None."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
