"""The summary of a run (summary.json), built from its training and its simulation."""

import math
from dataclasses import replace
from typing import Any

from cobre.core.bounds import gap_scale
from cobre.core.verdict import verdict
from cobre.policy.object import Policy
from cobre.runs.events import Event, new_event
from cobre.runs.summary import RunSummary
from cobre.sddp.iteration_records import (
    Phase,
    PhaseStatistics,
    least_traffic,
    phases_as_dict,
    sum_by_phase,
    total_traffic,
)
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.results import SimulationResult
from cobre.study.training.train import TrainedStudy
from cobre.text import counted, percent


def summarize_run(
    ready: ReadyStudy, source: TrainedStudy | Policy, simulation: SimulationResult | None, output: str
) -> RunSummary:
    """Summarise a run. source: the trained study, or the stored policy that was simulated instead."""
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
        solver=phases_as_dict(_solver_work(source, simulation)),
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
        **trained.outcome_fields,
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


def _solver_work(source: TrainedStudy | Policy, simulation: SimulationResult | None) -> PhaseStatistics:
    """Sum the work of all ranks' solvers in the whole run, by phase."""
    history = source.history if isinstance(source, TrainedStudy) else ()
    parts: list[PhaseStatistics] = [record.solver for record in history]
    if simulation is not None:
        parts.append({Phase.SIMULATION: simulation.solver})
    return sum_by_phase(parts)


# Note on a simulated mean that differs significantly from the policy cost.

MIN_COMPARED = 30
"""Smallest number of scenarios whose mean is compared with the policy cost."""


def _simulation_note(ready: ReadyStudy, summary: RunSummary, simulation: SimulationResult) -> str | None:
    """Explain why the simulated mean differs from the cost of the policy; None if chance explains it.

    None under a risk measure, where the two are different quantities.
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
    """Explain the difference by the settings and the controlled mean."""
    config = ready.study.case.config
    source = config.simulation.scenario_source or config.training.scenario_source
    mean, controlled_half_width = simulation.controlled_mean_cost, simulation.controlled_half_width
    if not source.is_in_sample:
        return (
            "scenarios are not drawn from the openings of training, the only ones that the policy is trained on; more "
            "openings bring the two together"
        )
    if mean is None or controlled_half_width is None:
        return "scenarios are drawn from the same openings, but a few of them cause most of the spread; simulate more"
    if abs(mean - cost) <= math.hypot(half_width, controlled_half_width):
        drawn = "more expensive" if simulation.mean_cost > cost else "cheaper"
        return (
            f"the openings drawn were {drawn} than average; corrected for this, the mean is "
            f"{percent(abs(mean - cost) / gap_scale(cost))} from that cost, which the intervals explain"
        )
    cuts = (
        "" if config.simulation.cut_set == "all" else "; the simulation uses active cuts only, which is another policy"
    )
    return (
        f"the openings drawn do not explain it: corrected for them, the mean is still {_offset(mean, cost)} it{cuts}. "
        "A few very expensive scenarios can cause this: simulate more scenarios, or train longer"
    )


def _offset(mean: float, cost: float) -> str:
    return f"{percent(abs(mean - cost) / gap_scale(cost))} {'above' if mean > cost else 'below'}"
