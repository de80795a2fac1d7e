"""The end of a study priced by another study's policy: read from its file, matched by date and by name."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from cobre.core.anticipation import Deliveries
from cobre.core.case import Case
from cobre.core.stage_data import COMMITMENT, ResolvedStudy
from cobre.core.state_names import INFLOW_LAG, StateName, StateOwners, kind_of, state_names
from cobre.io.boundary_file import find_boundary_file, stage_that_ends_on
from cobre.io.policy_file import PolicyMetadata, read_policy
from cobre.sddp.boundary import (
    Boundary,
    BoundaryMismatchError,
    PricedStates,
    fit_boundary,
    lags_read,
    with_boundary,
)
from cobre.sddp.cuts.pool import CutSet
from cobre.sddp.problem import Problem
from cobre.solver.batches import CutRows
from cobre.stochastic.model import NoiseModel
from cobre.stochastic.par.memory import inflow_memory
from cobre.stochastic.par.seasons import season_cycle
from cobre.stochastic.par.stage_periods import StagePeriods


def load_priced_states(case: Case) -> PricedStates | None:
    """What the case's boundary policy says of the day on which the study ends; None: the case names no such policy."""
    config = case.config.policy.boundary
    if config is None:
        return None
    data = read_policy(find_boundary_file(Path(config.path)))
    day = case.horizon.stages[-1].end_date
    stage = stage_that_ends_on(data.metadata, day)
    if stage is None:
        raise BoundaryMismatchError(
            f"the boundary policy at {config.path} prices no state of {day}, where this study ends; "
            f"its stages end on {', '.join(data.metadata.stage_end_dates)}"
        )
    cuts = data.stages[stage]
    return PricedStates(
        data.metadata.state_names,
        CutSet(cuts.intercepts, cuts.coefficients),
        float(data.metadata.cost_scale),
        _days_of_deliveries(data.metadata.state_names, stage, _periods_of(data.metadata)),
    )


def with_lags_of_boundary(case: Case, noise: NoiseModel, priced: PricedStates | None) -> NoiseModel:
    """The noise with as many lags in the state as the boundary's cuts depend on; they must be known where they start.

    A study whose own inflows have no memory carries the inflows along, for the cuts at its end ask for them.
    """
    read = None if priced is None else lags_read(priced, [hydro.id for hydro in case.system.hydros])
    if read is None or not len(read):
        return noise
    if case.horizon.season_definitions is None:
        raise BoundaryMismatchError(
            f"the boundary policy's cuts depend on {len(read)} inflow lag(s) of the seasons before the end: "
            "stages.json needs season_definitions, and every stage its season_id"
        )
    periods = StagePeriods(case.horizon, season_cycle(case.horizon))
    memory = inflow_memory(case, noise.lag_coefficients, periods, read.astype(np.float64))
    return replace(noise, ar_coefficients=memory.psi, lag_steps=memory.steps, initial_lags=memory.first)


def price_the_end(
    case: Case, study: ResolvedStudy, problem: Problem, priced: PricedStates | None
) -> tuple[Problem, CutRows | None, tuple[str, ...]]:
    """The problem that looks beyond its end, the cuts that it finds there, and what its user should know."""
    config = case.config.policy.boundary
    if config is None or priced is None:
        return problem, None, ()
    names = state_names(_owners(case), study.layout, problem.noise.max_order)
    deliveries = Deliveries.of(case.horizon, case.post_study)
    periods = tuple(zip(deliveries.starts, deliveries.ends, strict=True))
    days = _days_of_deliveries(names, deliveries.num_stages - 1, periods)
    boundary = fit_boundary(priced, names, problem.cost_scale, is_strict=config.strict, days=days)
    return with_boundary(problem, study, boundary), boundary.rows(), tuple(_notes(priced, names, boundary))


def _periods_of(metadata: PolicyMetadata) -> tuple[tuple[date, date], ...]:
    """The stages of a policy; none where it does not say when they are."""
    pairs = tuple(zip(metadata.stage_start_dates, metadata.stage_end_dates, strict=True))
    if any(not start or not end for start, end in pairs[1:]):
        return ()
    known = [(start or end, end) for start, end in pairs]
    return tuple((date.fromisoformat(start), date.fromisoformat(end)) for start, end in known)


def _days_of_deliveries(
    names: tuple[str, ...], stage: int, periods: Sequence[tuple[date, date]]
) -> dict[str, tuple[date, date]]:
    """By the name of each commitment at the end of a stage: when it is delivered, where that is known."""
    found = {}
    for name in names:
        if kind_of(name) == COMMITMENT:
            delivery = stage + StateName.parse(name).distance
            if delivery < len(periods):
                found[name] = periods[delivery]
    return found


def _owners(case: Case) -> StateOwners:
    return StateOwners([hydro.id for hydro in case.system.hydros], [plant.id for plant in case.system.thermals])


def _notes(priced: PricedStates, names: tuple[str, ...], boundary: Boundary) -> list[str]:
    notes = []
    if boundary.dropped:
        notes.append(
            "policy.boundary: the policy prices what this study does not have, which counts as zero: "
            + ", ".join(boundary.dropped)
        )
    has_lags, prices_lags = (INFLOW_LAG in map(kind_of, known) for known in (names, priced.state_names))
    if has_lags and not prices_lags:
        notes.append(
            "policy.boundary: the policy was trained without memory of inflows, which this study's inflows have: "
            "what is left at the end is priced whatever the last inflows were"
        )
    return notes
