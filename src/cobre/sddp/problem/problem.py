"""The SDDP problem: stage LPs, noise model and initial state."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from cobre.core.arrays import Floats, Ints, sum_in_order
from cobre.core.case import Case
from cobre.core.config import SKIPPED_WHEN_NONE
from cobre.core.preparation_steps import PreparationStep, StepReporter, no_report, report_each
from cobre.core.stage_data import ResolvedStudy, StageData
from cobre.records import dataclass
from cobre.sddp.lp.build import StageLp, build_stage_lp, has_same_lp, share_equal_arrays
from cobre.sddp.lp.failure import EntityNames
from cobre.sddp.lp.plan import PlanOptions, StagePlan
from cobre.sddp.plugins.interfaces import RiskMeasure
from cobre.sddp.plugins.risk import Expectation, risk_measure
from cobre.sddp.plugins.user_plugins import described, identity, is_plugin
from cobre.sddp.problem.openings import StageOpenings, may_be_negative, realise
from cobre.sddp.problem.scenario_tree import ScenarioTree
from cobre.sddp.problem.unreachable_minimums import UnreachableMinimum, flags_of, unreachable_minimums
from cobre.solver.batches import CutRows, Realisations
from cobre.solver.program import MAX_DENSE_ROWS
from cobre.stochastic.model import NoiseModel


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that training and simulation need; the same on all ranks.

    State: storages and other decided states, lagged inflows lag by lag, what is only passed on (`StateIndex`).
    """

    stages: tuple[StageLp, ...]
    openings: tuple[StageOpenings, ...]
    risk: tuple[RiskMeasure, ...]
    noise: NoiseModel
    initial_state: Floats
    cost_scale: float
    names: EntityNames
    unreachable: tuple[UnreachableMinimum, ...] = ()  # minimum storages that are soft constraints
    tree: ScenarioTree | None = None  # nodes with a value function each, where all paths take part

    @property
    def num_stages(self) -> int:
        """T, the number of stages."""
        return len(self.stages)

    @property
    def num_pools(self) -> int:
        """Value functions: one for each stage, or for each node."""
        return self.num_stages if self.tree is None else self.tree.num_nodes

    @property
    def pool_stages(self) -> tuple[int, ...]:
        """By value function: the stage that it belongs to."""
        if self.tree is None:
            return tuple(range(self.num_stages))
        return tuple(stage for stage in range(self.num_stages) for _ in self.tree.nodes(stage))

    @property
    def num_last_pools(self) -> int:
        """Number of value functions of the last stage."""
        return 1 if self.tree is None else len(self.tree.leaves)

    @property
    def dimension(self) -> int:
        """The number of entries of the state vector."""
        return len(self.initial_state)

    def carries_basis(self, stage: int) -> bool:
        """Return whether a forward path starts a stage from its own optimal basis of the stage before.

        True for LPs with more than `MAX_DENSE_ROWS` rows, whatever `COBRE_MAX_DENSE_ROWS` says: that variable chooses a
        factorisation, and a path keeps its starting bases. It takes about half as many pivots as starting from a basis
        of an earlier iteration, which belongs to another state and another policy.
        """
        return stage > 0 and self.is_large(stage)

    def basis_sources(self) -> list[tuple[bool, Ints | None]]:
        """Return by stage whether a forward path carries its basis into it, and then the `basis_source`."""
        return [
            (True, self.basis_source(stage)) if self.carries_basis(stage) else (False, None)
            for stage in range(self.num_stages)
        ]

    def basis_source(self, stage: int) -> Ints | None:
        """Return the index of the equally named column or row of the stage before, for each one of a stage; -1: none.

        Columns are numbered first, rows after them. None if both stages have the same names in the same order.
        """
        before, names = (self.stages[at].program.names for at in (stage - 1, stage))
        if names == before:
            return None
        column_of = {name: at for at, name in enumerate(before.columns)}
        row_of = {name: at for at, name in enumerate(before.rows, len(before.columns))}
        columns = [column_of.get(name, -1) for name in names.columns]
        return np.array([*columns, *(row_of.get(name, -1) for name in names.rows)], np.int32)

    def is_large(self, stage: int) -> bool:
        """Return whether the LP of a stage has more than `MAX_DENSE_ROWS` rows, so that a basis to start from pays."""
        return len(self.stages[stage].program.row_lower) > MAX_DENSE_ROWS

    @property
    def is_convex(self) -> bool:
        """Whether costs-to-go are convex in the state: nothing is corrected below zero that depends on its past."""
        options = self.stages[0].plan.options
        if not (options.truncates_inflow or options.limits_inflow_slack):
            return True
        psi = [stage.program.autoregression for stage in self.stages]
        return not may_be_negative(psi, [opening.realisations.inflow_m3s for opening in self.openings])

    @property
    def is_risk_neutral(self) -> bool:
        """Whether the expected cost is minimised: all openings of a stage count alike."""
        return all(isinstance(measure, Expectation) for measure in self.risk)

    @property
    def discounts(self) -> Floats:
        """By stage: the factor that discounts the cost of all later stages."""
        return np.array([stage.plan.data.discount for stage in self.stages])

    @property
    def discount_to_first_stage(self) -> Floats:
        """By stage: what 1 $ of it is worth in $ of the first stage."""
        return np.concatenate([np.ones(1), np.multiply.accumulate(self.discounts)[:-1]])

    def is_last(self, stage: int) -> bool:
        """Return whether a stage is the last of the study; its future cost is 0 or that of a boundary policy."""
        return stage == self.num_stages - 1

    def future_weight(self, stage: int) -> float:
        """Return the factor of the future cost to subtract from an LP's objective to get the cost of the stage.

        The stage's discount; 0 for the last stage, where the cost of a boundary policy belongs to the stage.
        """
        return 0.0 if self.is_last(stage) else self.stages[stage].plan.data.discount

    @property
    def num_hydros(self) -> int:
        """N, the number of hydro plants."""
        return self.stages[0].plan.num_hydros

    @property
    def initial_lags(self) -> Floats:
        """Lags x N, m3/s: the inflows before the study, lag 1 first."""
        index = self.stages[0].plan.state_index
        lags = self.initial_state[index.num_decided : index.num_decided + index.num_lags * index.num_hydros]
        return lags.reshape(index.num_lags, index.num_hydros)


def build_problem(
    study: ResolvedStudy,
    noise: NoiseModel,
    options: PlanOptions,
    consumption: Floats,
    names: EntityNames,
    report: StepReporter = no_report,
) -> Problem:
    """Build every stage's LP and realise every opening. `consumption`: MW per m3/s of the pumping stations."""
    plans, unreachable = stage_plans(study, noise, options, consumption)
    stages: list[StageLp] = []
    latest_of_season: dict[int | None, StageLp] = {}
    for plan in report_each(plans, PreparationStep.PROGRAMS, len(plans), report):
        season = plan.data.stage.season_id
        last_year = latest_of_season.get(season)
        if last_year is not None and has_same_lp(plan, last_year.plan):
            built = replace(last_year, plan=plan)
        else:
            built = build_stage_lp(plan)
            # Most arrays equal those of the stage before: storing them once halves the memory of real decks.
            built = share_equal_arrays(stages[-1], built) if stages else built
        latest_of_season[season] = built
        stages.append(built)
    lags = np.asarray(noise.initial_lags, np.float64).reshape(-1)
    return Problem(
        stages=tuple(stages),
        openings=tuple(StageOpenings.of(realise(noise, t, noise.openings[t])) for t in range(len(stages))),
        risk=tuple(risk_measure(data.stage.risk) for data in study.stages),
        noise=noise,
        initial_state=np.concatenate(
            [_first_storage(study, options), study.initial_decided, lags, study.initial_passed]
        ),
        cost_scale=options.cost_scale,
        names=names,
        unreachable=unreachable,
    )


def stage_plans(
    study: ResolvedStudy, noise: NoiseModel, options: PlanOptions, consumption: Floats
) -> tuple[list[StagePlan], tuple[UnreachableMinimum, ...]]:
    """Return the plan of each stage's LP, and unreachable minimums, which become soft constraints."""
    last = len(study.stages) - 1
    floors = future_cost_floors(study, options)
    num_hydros = len(study.topology.downstream)
    plans = [
        StagePlan(
            data,
            study.topology,
            study.layout,
            options,
            np.ascontiguousarray(noise.ar_coefficients[t]),
            *noise.lag_changes(t),
            consumption,
            future_cost_floor=floors[t] if t < last else 0.0,
            future_cost_ceiling=np.inf if t < last else 0.0,
            is_out_of_reach=np.zeros(num_hydros, np.bool_),
        )
        for t, data in enumerate(study.stages)
    ]
    unreachable = unreachable_minimums(study, noise, plans)
    if unreachable:
        plans = [replace(plan, is_out_of_reach=flags_of(unreachable, num_hydros)) for plan in plans]
    return plans, unreachable


def _first_storage(study: ResolvedStudy, options: PlanOptions) -> Floats:
    """Return initial storages within the plants' own limits (0.19), or also within those of the first stage (0.18)."""
    if options.keeps_initial_storage:
        return study.initial_storage_hm3
    hydro = study.stages[0].hydro
    is_active = hydro.is_active
    clamped = np.clip(study.initial_storage_hm3, hydro.min_storage_hm3, hydro.max_storage_hm3)
    return np.where(is_active, clamped, study.initial_storage_hm3)


def future_cost_floors(study: ResolvedStudy, options: PlanOptions) -> list[float]:
    """Return for every stage a lower bound on later cost, scaled, or zero where that is less.

    Costs are negative only where something is rewarded: sources that generate, contracts that sell, thermal plants with
    negative prices. Minimum generation and obligatory purchases offset these revenues.
    """
    floors = [0.0] * len(study.stages)
    lower = 0.0
    for t in range(len(study.stages) - 2, -1, -1):
        following = study.stages[t + 1]
        lower = _least_cost(following) / options.cost_scale + following.discount * lower
        floors[t] = min(0.0, lower)
    return floors


def _least_cost(data: StageData) -> float:
    """Return the cost with every plant, source and contract at the cheaper end of its range, whatever the balances."""
    hours, source, contract, thermal = data.hours, data.source, data.contract, data.thermal
    ahead = data.commitment
    reward = -source.curtailment_cost[:, None] * source.available_mw[:, None] * source.factor * hours
    trade = np.minimum(contract.price * contract.max_mw, contract.price * contract.min_mw) * hours
    price = np.where(data.commitment.is_committed[:, None], 0.0, thermal.cost)
    burn = np.minimum(price * thermal.max_mw, price * thermal.min_mw) * hours
    order = np.minimum(ahead.cost * ahead.max_mw, ahead.cost * ahead.min_mw)
    parts = np.concatenate([part.reshape(-1) for part in (reward, trade, burn, order)])
    return sum_in_order(parts.tolist())


# A digest of everything that cuts and bounds of a policy belong to: change any of it, and they may be wrong.


def problem_digest(problem: Problem, stage_ids: Sequence[int], boundary: CutRows | None) -> str:
    """Return a SHA-256 over LPs, openings, risk measures, the initial state and the boundary cuts.

    Names of dataclass fields are part of it: a renamed field keeps its old name here, or stored policies would count
    as policies of another problem.
    """
    digest = hashlib.sha256()
    texts: Texts = {}
    for stage, opening in zip(problem.stages, problem.openings, strict=True):
        feed(digest, stage.program, texts)
        _feed_fields(digest, {"realisations": opening.realisations, "order": opening.order, "rank": opening.position})
    risk = [identity(measure) for measure in problem.risk]
    feed(digest, [problem.initial_state, problem.cost_scale, risk, list(stage_ids), boundary])
    if problem.tree is not None:
        feed(digest, problem.tree)
    return digest.hexdigest()


Texts = dict[int, bytes]
"""Names of LPs as they are hashed, by the identity of their tuple: stages share most of them."""


def feed(digest: Any, value: object, texts: Texts | None = None) -> None:
    """Hash anything that a problem is made of, with its type, so that different things differ.

    texts: for tuples of names that occur repeatedly, and live as long.
    """
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        array = np.ascontiguousarray(value)
        digest.update(array if array.dtype.kind in "biuf" else array.tobytes())
    elif isinstance(value, (CutRows, Realisations)):
        _feed_fields(digest, {name: getattr(value, name) for name in value.__match_args__})
    elif is_dataclass(value) and not isinstance(value, type):
        values = {item.name: getattr(value, item.name) for item in fields(value)}
        # Optional fields are skipped while None, so older digests stay valid.
        skipped = {item.name for item in fields(value) if item.metadata.get(SKIPPED_WHEN_NONE)}
        hashed = {name: entry for name, entry in values.items() if entry is not None or name not in skipped}
        _feed_fields(digest, hashed, texts)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            feed(digest, key)
            feed(digest, entry)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        digest.update(f"[{len(value)}]".encode())
        names = _names(value, {} if texts is None else texts)
        if names is not None:
            digest.update(names)
            return
        for entry in value:
            feed(digest, entry)
    else:
        digest.update(f"{type(value).__name__}:{value!r};".encode())


def _names(value: Sequence[object], texts: Texts) -> bytes | None:
    """Return the text of a sequence of names, thousands in every LP; None for any other sequence."""
    if id(value) not in texts and set(map(type, value)) == {str}:
        texts[id(value)] = "\0".join(cast("Sequence[str]", value)).encode()
    return texts.get(id(value))


def _feed_fields(digest: Any, values: Mapping[str, object], texts: Texts | None = None) -> None:
    for name, value in values.items():
        digest.update(name.encode())
        feed(digest, value, texts)


# A case that is ready to be trained or simulated.


@dataclass(frozen=True)  # without slots: the digest is kept in the instance
class PreparedStudy:
    """A case with its noise and its LPs.

    boundary: cuts of a boundary policy after the last stage. notes: warnings for the user.
    """

    case: Case
    noise: NoiseModel
    problem: Problem
    boundary: CutRows | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_risk_averse(self) -> bool:
        """Whether a stage has a risk measure other than the expectation."""
        return not self.problem.is_risk_neutral

    @property
    def risk_plugin(self) -> str:
        """Words for the risk measure of a user, such as `Entropic(aversion=2.0)`; empty: the case's own."""
        measure = self.problem.risk[0]
        return described(measure) if is_plugin(measure) else ""

    @cached_property
    def digest(self) -> str:
        """Digest of the problem, which cuts and bounds belong to. Computed once: 0.1 s at production size."""
        return problem_digest(self.problem, [stage.id for stage in self.case.horizon.stages], self.boundary)
