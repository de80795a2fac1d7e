"""Boundary policies: read from a file, matched with the study by date and state name, and applied.

Plants of two studies that number them differently are matched by name. What a plant without a counterpart holds cannot
be carried over: where it has one volume only, its part of a cut is a constant and joins the intercept; other states of
it count as zero, and are named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from cobre.core.arrays import HOURS_PER_DAY
from cobre.core.case import Case, InflowObservation
from cobre.core.delays import Deliveries, travel_arcs
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, ResolvedStudy
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName, kind_of, state_names
from cobre.io.policies.policy_file import STAGE_HOURS, PolicyMetadata, find_policy_file, read_policy
from cobre.io.policies.policy_source import PolicySource, can_store, new_ids, source_of
from cobre.policy.object import state_owners
from cobre.sddp.cut_pool import CutSet
from cobre.sddp.problem.boundary import (
    BoundaryCuts,
    BoundaryMismatchError,
    Days,
    ExternalCuts,
    Period,
    fit_boundary,
    lags_read,
    periods_after,
    values_water_in_transit,
    with_boundary,
)
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import CutRows
from cobre.stochastic.model import NoiseModel
from cobre.stochastic.par.model import inflow_memory
from cobre.stochastic.par.seasons import StagePeriods, season_cycle
from cobre.text import counted

MAX_NAMED = 12  # states or plants in a note


def load_boundary_policy(case: Case) -> ExternalCuts | None:
    """Load the case's boundary policy at the day on which the study ends; None if the case has none."""
    config = case.config.policy.boundary
    if config is None:
        return None
    file = find_policy_file(Path(config.path))
    data = read_policy(file)
    day = case.horizon.stages[-1].end_date
    stage = data.metadata.stage_that_ends_on(day)
    if stage is None:
        raise BoundaryMismatchError(
            f"the boundary policy at {config.path} has no cost-to-go on {day}, where this study ends; "
            f"its stages end on {', '.join(data.metadata.stage_end_dates)}"
        )
    cuts, periods = data.stages[stage], _periods_of(data.metadata)
    policy = ExternalCuts(
        data.metadata.state_names,
        CutSet(cuts.intercepts, cuts.coefficients),
        float(data.metadata.cost_scale),
        _days_ahead(data.metadata.state_names, stage, {COMMITMENT: periods, IN_TRANSIT: periods}),
        periods[stage + 1 :],
    )
    return match_plants(policy, source_of(file), case, is_strict=config.strict)


def match_plants(policy: ExternalCuts, source: PolicySource | None, case: Case, *, is_strict: bool) -> ExternalCuts:
    """Return the policy with the ids of this study, by name if the two studies number their plants differently.

    is_strict: raise BoundaryMismatchError if a plant that the policy values is not in this study.
    """
    if source is None:
        return policy
    hydros = new_ids(source.hydros, case.system.hydros)
    thermals = new_ids(source.thermals, case.system.thermals)
    if hydros is None and thermals is None:
        return replace(policy, past=source.past)
    hydros = {id_: id_ for id_ in source.hydros} if hydros is None else hydros
    thermals = {id_: id_ for id_ in source.thermals} if thermals is None else thermals
    here = {hydro.id for hydro in case.system.hydros if can_store(hydro)}
    columns: list[int] = []
    names: list[str] = []
    dropped: dict[str, None] = {}  # an ordered set
    intercepts = policy.cuts.intercepts.copy()
    for column, text in enumerate(policy.state_names):
        name, slopes = StateName.parse(text), policy.cuts.coefficients[:, column]
        is_thermal = name.kind == COMMITMENT
        plant = (thermals if is_thermal else hydros).get(name.entity_id)
        volume = source.volumes.get(name.entity_id) if name.kind == STORAGE else None
        if volume is not None and plant not in here:
            intercepts += slopes * volume
        elif plant is not None:
            columns.append(column)
            names.append(str(replace(name, entity_id=plant)))
        elif slopes.any():
            dropped[(source.thermals if is_thermal else source.hydros).get(name.entity_id, text)] = None
    if dropped and is_strict:
        raise BoundaryMismatchError(
            f"the boundary policy values plants that this study does not have: {_named(dropped)}; "
            "with policy.boundary.strict = false they count as zero"
        )
    cuts = CutSet(intercepts, np.ascontiguousarray(policy.cuts.coefficients[:, columns]))
    old = dict(zip(policy.state_names, range(len(policy.state_names)), strict=True))
    days = {
        names[columns.index(old[text])]: days_of_column
        for text, days_of_column in policy.days.items()
        if old[text] in columns
    }
    past = tuple(replace(one, hydro_id=new) for one in source.past if (new := hydros.get(one.hydro_id)) is not None)
    notes = tuple(_matching_notes(case, hydros, dropped))
    return replace(policy, state_names=tuple(names), cuts=cuts, days=days, past=past, notes=notes)


def later_periods(case: Case, policy: ExternalCuts | None) -> tuple[Period, ...]:
    """Return the periods after the study in which arriving water is a state of its last stage.

    Those of post_study_stages.json, then the policy's own stages; none if no cut depends on water in transit.
    """
    targets = {arc.downstream_id for arc in travel_arcs(case.system.hydros)}
    if policy is None or not values_water_in_transit(policy, targets):
        return ()
    periods = [Period(stage.start_date, stage.end_date, stage.duration_hours) for stage in case.post_study.stages]
    return periods_after(policy, periods, case.horizon.stages[-1].end_date)


def with_lags_of_boundary(case: Case, noise: NoiseModel, policy: ExternalCuts | None) -> NoiseModel:
    """Extend the noise model to as many inflow lags in the state as the boundary cuts depend on.

    A study whose own inflows have no lags then carries past inflows in its state only for the boundary cuts; their
    values before the study must be known (`BoundaryMismatchError` otherwise), from the case or from the policy's run.
    """
    if policy is None:
        return noise
    read = lags_read(policy, [hydro.id for hydro in case.system.hydros])
    if not len(read):
        return noise
    if case.horizon.season_definitions is None:
        raise BoundaryMismatchError(
            f"the boundary policy's cuts depend on inflows of earlier seasons ({counted(len(read), 'lag')}): "
            "stages.json needs season_definitions, and every stage its season_id"
        )
    periods = StagePeriods(case.horizon, season_cycle(case.horizon))
    unread = [
        hydro.id
        for at, hydro in enumerate(case.system.hydros)
        if not (read[:, at].any() or noise.lag_coefficients[:, :, at].any())
    ]
    observed = with_past(case, policy.past, unread)
    memory = inflow_memory(observed, noise.lag_coefficients, periods, read.astype(np.float64))
    return replace(noise, ar_coefficients=memory.psi, lag_steps=memory.steps, initial_lags=memory.first)


def with_past(case: Case, past: Sequence[InflowObservation], unread: Sequence[int]) -> Case:
    """Add inflows of the days before the case, for plants that it has no observations of on these days.

    unread: plants whose past nothing depends on. It counts as 0 if it is unknown: a month that the study continues
    must be known of all plants.
    """
    hydro_ids = {one.hydro_id for one in past}
    days = dict.fromkeys((one.start_date, one.end_date) for one in past)
    past = (*past, *(InflowObservation(id_, *at, 0.0) for id_ in unread if id_ not in hydro_ids for at in days))
    start = case.horizon.stages[0].start_date
    by_hydro: dict[int, list[InflowObservation]] = {}
    for one in case.initial_conditions.recent_observations:
        by_hydro.setdefault(one.hydro_id, []).append(one)
    added = [
        replace(one, end_date=min(one.end_date, start))
        for one in past
        if one.start_date < start and not any(_overlap(one, other) for other in by_hydro.get(one.hydro_id, ()))
    ]
    observations = (*case.initial_conditions.recent_observations, *added)
    return replace(case, initial_conditions=replace(case.initial_conditions, recent_observations=observations))


def _overlap(one: InflowObservation, other: InflowObservation) -> bool:
    return one.start_date < other.end_date and other.start_date < one.end_date


def apply_boundary_policy(
    case: Case, study: ResolvedStudy, problem: Problem, policy: ExternalCuts | None
) -> tuple[Problem, CutRows | None, tuple[str, ...]]:
    """Return the problem with a future cost after its last stage, the boundary cuts for the solver, and notes.

    study: resolved with the hours of `later_periods`.
    """
    config = case.config.policy.boundary
    if config is None or policy is None:
        return problem, None, ()
    names = state_names(state_owners(case), study.layout, problem.noise.max_order)
    deliveries = Deliveries.of(case.horizon, case.post_study)
    delivery_periods = tuple(map(Period, deliveries.starts, deliveries.ends, deliveries.hours))
    periods = {
        COMMITMENT: delivery_periods,
        IN_TRANSIT: (*delivery_periods[: deliveries.num_stages], *later_periods(case, policy)),
    }
    days = _days_ahead(names, deliveries.num_stages - 1, periods)
    unstored = {str(StateName(STORAGE, hydro.id)) for hydro in case.system.hydros if not can_store(hydro)}
    boundary = fit_boundary(policy, names, problem.cost_scale, is_strict=config.strict, days=days, unstored=unstored)
    notes = (
        *policy.notes,
        *_notes(policy, names, boundary, _unvalued(case, problem, boundary, days)),
        *_worthless_water(case, policy),
    )
    return with_boundary(problem, study, boundary), boundary.rows(), notes


def _periods_of(metadata: PolicyMetadata) -> tuple[Period, ...]:
    """Return the stages of a policy; empty if the file has no dates. Hours default to those of the calendar."""
    pairs = tuple(zip(metadata.stage_start_dates, metadata.stage_end_dates, strict=True))
    if any(not start or not end for start, end in pairs[1:]):
        return ()
    days = [(date.fromisoformat(start or end), date.fromisoformat(end)) for start, end in pairs]
    stage_hours = metadata.facts.get(STAGE_HOURS)
    hours = (
        [float((end - start).days) * HOURS_PER_DAY for start, end in days]
        if stage_hours is None
        else map(float, stage_hours)
    )
    return tuple(Period(start, end, length) for (start, end), length in zip(days, hours, strict=True))


def _days_ahead(
    names: tuple[str, ...], stage: int, periods: Mapping[str, Sequence[Period]]
) -> dict[str, tuple[date, date]]:
    """Return, by state name, first and last day of delivery or arrival, at the end of a stage.

    The states are commitments and water in transit; names without known days are left out.
    periods: by kind of state, the stages and the periods after them.
    """
    days = {}
    for name in names:
        ahead = periods.get(kind_of(name), ())
        if ahead and (at := stage + StateName.parse(name).distance) < len(ahead):
            days[name] = (ahead[at].start, ahead[at].end)
    return days


def _worthless_water(case: Case, policy: ExternalCuts) -> list[str]:
    """Return a note that water in transit at the end has no value, where the policy has no state for it."""
    arcs = travel_arcs(case.system.hydros)
    valued = {StateName.parse(name) for name in policy.state_names}
    targets = {name.entity_id for name in valued if name.kind == IN_TRANSIT}
    unknown = sorted({arc.downstream_id for arc in arcs} - targets)
    if not unknown:
        return []
    plants = f"hydro{'s' * (len(unknown) > 1)} {', '.join(map(str, unknown))}"
    text = (
        "policy.boundary: the policy does not value water in transit when this study ends; what is on its way to "
        f"{plants} then counts as zero: train the policy on a case with travel_time_hours"
    )
    return [text]


def _unvalued(case: Case, problem: Problem, boundary: BoundaryCuts, days: Days) -> list[str]:
    """Return states of the last stage that the policy does not value, except lags of inflows without memory."""
    lags, hydros = np.nonzero((problem.noise.ar_coefficients != 0.0).any(axis=0))
    ids = [hydro.id for hydro in case.system.hydros]
    remembered = {
        str(StateName(INFLOW_LAG, ids[at], lag + 1)) for lag, at in zip(lags.tolist(), hydros.tolist(), strict=True)
    }
    return [name for name in boundary.unvalued if name in days or name in remembered]


def _notes(policy: ExternalCuts, names: tuple[str, ...], boundary: BoundaryCuts, unvalued: Sequence[str]) -> list[str]:
    notes = []
    if boundary.dropped:
        advice = "; post_study_stages.json says what is delivered after the study"
        is_ahead = COMMITMENT in map(kind_of, boundary.dropped)
        notes.append(
            "policy.boundary: the policy values state variables that this study does not have; they count as zero: "
            + ", ".join(boundary.dropped)
            + advice * is_ahead
        )
    has_lags, prices_lags = (INFLOW_LAG in map(kind_of, state_names) for state_names in (names, policy.state_names))
    named = [name for name in unvalued if prices_lags or kind_of(name) != INFLOW_LAG]
    if named:
        more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
        notes.append(
            "policy.boundary: this study has state variables that the policy does not value; they count as zero: "
            + ", ".join(named[:MAX_NAMED])
            + more
        )
    if has_lags and not prices_lags:
        notes.append(
            "policy.boundary: the policy was trained without memory of inflows, which this study's inflows have: "
            "the value of stored water at the end does not depend on the last inflows"
        )
    return notes


def _matching_notes(case: Case, hydros: Mapping[int, int], dropped: Iterable[str]) -> Iterable[str]:
    matched = set(hydros.values())
    unknown = [hydro.name for hydro in case.system.hydros if hydro.id not in matched]
    yield (
        f"policy.boundary: the policy's study numbers its plants differently: {len(matched)} of "
        f"{len(case.system.hydros)} hydros are matched by name"
        + (f"; without a counterpart there: {_named(unknown)}" if unknown else "")
    )
    if names := list(dropped):
        yield (
            "policy.boundary: the policy values states of plants that this study does not have; they count as zero: "
            + _named(names)
        )


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MAX_NAMED} more" if len(listed) > MAX_NAMED else ""
    return ", ".join(listed[:MAX_NAMED]) + more
