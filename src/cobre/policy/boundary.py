"""Read a boundary policy from its file, match it with the study by date and by state name, and apply it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from cobre.core.anticipation import Deliveries
from cobre.core.case import Case
from cobre.core.stage_data import COMMITMENT, ResolvedStudy
from cobre.core.state_names import INFLOW_LAG, StateName, kind_of, state_names
from cobre.io.policies.policy_file import PolicyMetadata, find_policy_file, read_policy
from cobre.policy.object import state_owners
from cobre.sddp.cuts.pool import CutSet
from cobre.sddp.problem.boundary import (
    BoundaryCuts,
    BoundaryMismatchError,
    ExternalCuts,
    fit_boundary,
    lags_read,
    with_boundary,
)
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import CutRows
from cobre.stochastic.model import NoiseModel
from cobre.stochastic.par.memory import inflow_memory
from cobre.stochastic.par.seasons import season_cycle
from cobre.stochastic.par.stage_periods import StagePeriods
from cobre.wording import counted


def load_boundary_policy(case: Case) -> ExternalCuts | None:
    """The case's boundary policy at the day on which the study ends; None where the case has none."""
    config = case.config.policy.boundary
    if config is None:
        return None
    data = read_policy(find_policy_file(Path(config.path)))
    day = case.horizon.stages[-1].end_date
    stage = data.metadata.stage_that_ends_on(day)
    if stage is None:
        raise BoundaryMismatchError(
            f"the boundary policy at {config.path} has no cost-to-go on {day}, where this study ends; "
            f"its stages end on {', '.join(data.metadata.stage_end_dates)}"
        )
    cuts = data.stages[stage]
    return ExternalCuts(
        data.metadata.state_names,
        CutSet(cuts.intercepts, cuts.coefficients),
        float(data.metadata.cost_scale),
        _days_of_deliveries(data.metadata.state_names, stage, _periods_of(data.metadata)),
    )


def with_lags_of_boundary(case: Case, noise: NoiseModel, policy: ExternalCuts | None) -> NoiseModel:
    """The noise model with as many inflow lags in the state as the boundary cuts depend on.

    A study whose own inflows have no lags then carries past inflows in its state for the boundary cuts alone; their
    values before the study must be known (`BoundaryMismatchError` otherwise).
    """
    read = None if policy is None else lags_read(policy, [hydro.id for hydro in case.system.hydros])
    if read is None or not len(read):
        return noise
    if case.horizon.season_definitions is None:
        raise BoundaryMismatchError(
            f"the boundary policy's cuts depend on inflows of earlier seasons ({counted(len(read), 'lag')}): "
            "stages.json needs season_definitions, and every stage its season_id"
        )
    periods = StagePeriods(case.horizon, season_cycle(case.horizon))
    memory = inflow_memory(case, noise.lag_coefficients, periods, read.astype(np.float64))
    return replace(noise, ar_coefficients=memory.psi, lag_steps=memory.steps, initial_lags=memory.first)


def apply_boundary_policy(
    case: Case, study: ResolvedStudy, problem: Problem, policy: ExternalCuts | None
) -> tuple[Problem, CutRows | None, tuple[str, ...]]:
    """The problem with a future cost after its last stage, the boundary cuts for the solver, and notes for the user."""
    config = case.config.policy.boundary
    if config is None or policy is None:
        return problem, None, ()
    names = state_names(state_owners(case), study.layout, problem.noise.max_order)
    deliveries = Deliveries.of(case.horizon, case.post_study)
    periods = tuple(zip(deliveries.starts, deliveries.ends, strict=True))
    days = _days_of_deliveries(names, deliveries.num_stages - 1, periods)
    boundary = fit_boundary(policy, names, problem.cost_scale, is_strict=config.strict, days=days)
    return with_boundary(problem, study, boundary), boundary.rows(), tuple(_notes(policy, names, boundary))


def _periods_of(metadata: PolicyMetadata) -> tuple[tuple[date, date], ...]:
    """First and end date of each stage of a policy; empty where the file has no dates."""
    pairs = tuple(zip(metadata.stage_start_dates, metadata.stage_end_dates, strict=True))
    if any(not start or not end for start, end in pairs[1:]):
        return ()
    known = [(start or end, end) for start, end in pairs]
    return tuple((date.fromisoformat(start), date.fromisoformat(end)) for start, end in known)


def _days_of_deliveries(
    names: tuple[str, ...], stage: int, periods: Sequence[tuple[date, date]]
) -> dict[str, tuple[date, date]]:
    """By state name of each commitment at the end of a stage: its delivery period, where that is known."""
    found = {}
    for name in names:
        if kind_of(name) == COMMITMENT:
            delivery = stage + StateName.parse(name).distance
            if delivery < len(periods):
                found[name] = periods[delivery]
    return found


def _notes(policy: ExternalCuts, names: tuple[str, ...], boundary: BoundaryCuts) -> list[str]:
    notes = []
    if boundary.dropped:
        notes.append(
            "policy.boundary: the policy values state variables that this study does not have; they count as zero: "
            + ", ".join(boundary.dropped)
        )
    has_lags, prices_lags = (INFLOW_LAG in map(kind_of, known) for known in (names, policy.state_names))
    if has_lags and not prices_lags:
        notes.append(
            "policy.boundary: the policy was trained without memory of inflows, which this study's inflows have: "
            "the value of stored water at the end does not depend on the last inflows"
        )
    return notes
