"""A trained policy: the cuts of every stage, the cost of a state that they give, and water values."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cobre.core.arrays import Floats, Ints
from cobre.core.case import Case, facts_html
from cobre.core.stage_data import COMMITMENT
from cobre.core.state_names import STORAGE, StateOwners, kind_of, owner_of, prefix_of
from cobre.core.state_names import state_names as names_of_states
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool, CutSet
from cobre.sddp.iteration_records import IterationRecord
from cobre.sddp.problem.problem import PreparedStudy
from cobre.text import money

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Policy:
    """A trained policy: for every stage, cuts that bound the cost of all later stages from below.

    A cut is intercept + coefficients @ state, for the state at the end of the stage, in $ divided by `cost_scale`.
    Slots are in order of (iteration, forward pass).

    stage_ids: the stage of each value function (of each node, for a tree).
    state_names: names of the entries of a state, such as `storage:3` (hm3) or `inflow_lag1:3` (m3/s) of plant 3.
    cuts: the cuts of each stage. active: for each stage, 1 for each cut that cut selection kept, 0 for the others.
    created, forward_pass: for each slot, the iteration (from 1) and the forward pass (from 0) of its cut.
    final_lower_bound, final_upper_bound: $, of the last iteration.
    problem: the digest of the problem that it was trained on; empty if unknown.
    risk_measure: the plug-in under which it was trained, as text; empty for the risk measure of the case.

    >>> policy = cobre.train("examples/two_reservoirs", iterations=3).policy
    >>> policy.state_names
    ('storage:0', 'storage:1')
    >>> policy.cost_to_go(0, [500.0, 300.0]) > 0.0  # $
    True
    >>> sorted(policy.water_values(0, [500.0, 300.0]))  # $ per hm3 of each reservoir
    ['storage:0', 'storage:1']
    """

    stage_ids: tuple[int, ...]
    state_names: tuple[str, ...]
    cuts: tuple[CutSet, ...]
    active: tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], ...]
    created: Ints
    forward_pass: Ints
    cost_scale: float
    final_lower_bound: float
    final_upper_bound: float
    iterations: int
    problem: str = ""
    risk_measure: str = ""

    @classmethod
    def of(cls, study: PreparedStudy, pool: CutPool, history: Sequence[IterationRecord]) -> "Policy":
        """Copy the cuts of a pool, after the last iteration of `history`."""
        written = [pool.written[stage] != 0 for stage in range(pool.num_stages)]
        cuts = [pool.cuts(stage) for stage in range(pool.num_stages)]
        return cls(
            stage_ids=pool_stage_ids(study),
            state_names=state_names(study),
            cuts=tuple(CutSet(c.intercepts[w], c.coefficients[w]) for c, w in zip(cuts, written, strict=True)),
            active=tuple(pool.active[stage][w].copy() for stage, w in enumerate(written)),
            created=pool.created.copy(),
            forward_pass=pool.forward_pass.copy(),
            cost_scale=study.problem.cost_scale,
            final_lower_bound=history[-1].lower_bound,
            final_upper_bound=history[-1].upper_bound,
            iterations=history[-1].iteration,
            problem=study.digest,
            risk_measure=study.risk_plugin,
        )

    def __repr__(self) -> str:
        cuts = sum(len(stage_cuts.intercepts) for stage_cuts in self.cuts)
        return (
            f"<Policy: {self.num_stages} stages, {self.dimension} states, {cuts:,} cuts after {self.iterations} "
            f"iterations, lower bound {money(self.final_lower_bound)} $>"
        )

    def _repr_html_(self) -> str:
        cuts = [len(stage_cuts.intercepts) for stage_cuts in self.cuts]
        counts = Counter(prefix_of(name) for name in self.state_names)
        facts = {
            "stages": f"{self.num_stages}",
            "state": f"{self.dimension} entries: {', '.join(f'{count} {kind}' for kind, count in counts.items())}",
            "cuts": f"{sum(cuts):,}, up to {max(cuts, default=0):,} in a stage",
            "iterations": f"{self.iterations:,}",
            "lower bound": f"{money(self.final_lower_bound)} $",
        }
        return facts_html("Cobre policy", facts)

    @property
    def num_stages(self) -> int:
        """Number of value functions: of stages, or of nodes for a tree."""
        return len(self.stage_ids)

    @property
    def dimension(self) -> int:
        """Number of entries of a state."""
        return len(self.state_names)

    def cost_to_go(self, stage: int, state: Sequence[float]) -> float:
        """Return a lower bound, in $, on the expected cost after `stage` (from 0), from a state at its end.

        state: a number for each of `state_names`. 0 for a stage without cuts, such as the last one. Raises IndexError
        if there is no such stage, ValueError if the state has not one finite number for each name.
        """
        values = self._cut_values(stage, state)
        return float(values.max()) * self.cost_scale if len(values) else 0.0

    def evaluate(self, stage: int, state: Sequence[float]) -> float:
        """Return the highest cut at a state, in the unit of the stored cuts: $ divided by the case's cost_scale_factor.

        A stage without cuts, such as the last one, gives minus infinity: nothing is known there. See `cost_to_go`,
        also for the errors.
        """
        values = self._cut_values(stage, state)
        return float(values.max()) if len(values) else -math.inf

    def cut_matrix(self, stage: int) -> tuple[Floats, Floats]:
        """Return intercepts (one per cut) and coefficients (cuts x state) of a stage, in the unit of the stored cuts.

        Copies, which may be changed. Raises IndexError if there is no such stage (from 0).
        """
        self._check_stage(stage)
        return self.cuts[stage].intercepts.copy(), self.cuts[stage].coefficients.copy()

    def water_values(self, stage: int, state: Sequence[float]) -> dict[str, float]:
        """Return $ per hm3 of each reservoir at the end of a stage: the slope of the cut that is highest there.

        By names such as `storage:3`; 0 for a stage without cuts. Raises IndexError and ValueError as `cost_to_go`.
        """
        return self._marginal_values(stage, state, STORAGE)

    def _marginal_values(self, stage: int, state: Sequence[float], kind: str) -> dict[str, float]:
        values = self._cut_values(stage, state)
        if not len(values):
            return {name: 0.0 for name in self.state_names if kind_of(name) == kind}
        slopes = self.cuts[stage].coefficients[int(values.argmax())]
        slopes_by_name = zip(self.state_names, slopes.tolist(), strict=True)
        return {name: -slope * self.cost_scale for name, slope in slopes_by_name if kind_of(name) == kind}

    def commitment_values(self, stage: int, state: Sequence[float]) -> dict[str, float]:
        """Return the value of one more MW of each commitment, in $: a MW in every hour of the stage of delivery.

        By names such as `commitment2:5`: thermal plant 5, delivered two stages later. Empty for a study without
        anticipated plants; 0 for a stage without cuts. Raises IndexError and ValueError as `cost_to_go`.

            saved = policy.commitment_values(0, state)["commitment1:5"]    # $ per MW, as 36000.0
            saved / 720.0    # $ per MWh, where the stage of delivery has 720 hours: 50.0
        """
        return self._marginal_values(stage, state, COMMITMENT)

    def _cut_values(self, stage: int, state: Sequence[float]) -> Floats:
        """Evaluate every cut of a stage at a state.

        Components are added in order, so that the sum is the same everywhere.
        """
        self._check_stage(stage)
        point = self.checked_state(state)
        values = self.cuts[stage].intercepts.copy()
        for component, x in enumerate(point.tolist()):
            values += x * self.cuts[stage].coefficients[:, component]
        return values

    def checked_state(self, state: Sequence[float]) -> Floats:
        """Return a state as an array; raise ValueError unless it has a finite number for each of `state_names`."""
        point = np.asarray(state, np.float64)
        if point.shape != (self.dimension,):
            raise ValueError(
                f"a state of this policy has {self.dimension} entries ({', '.join(self.state_names)}), "
                f"not {point.shape}"
            )
        odd = [
            f"{name} is {x}" for name, x in zip(self.state_names, point.tolist(), strict=True) if not math.isfinite(x)
        ]
        if odd:
            raise ValueError(f"state entries must be finite: {', '.join(odd)}")
        return point

    def _check_stage(self, stage: int) -> None:
        if not 0 <= stage < self.num_stages:
            raise IndexError(f"stage {stage} is not in 0 .. {self.num_stages - 1}")


def pool_stage_ids(study: PreparedStudy) -> tuple[int, ...]:
    """Return the stage of each value function: of each stage, or of each node of a tree."""
    ids, tree = [stage.id for stage in study.case.horizon.stages], study.problem.tree
    return tuple(ids) if tree is None else tuple(id_ for stage, id_ in enumerate(ids) for _ in tree.nodes(stage))


def state_names(study: PreparedStudy) -> tuple[str, ...]:
    """Return one name for each entry of the state."""
    return names_of_states(state_owners(study.case), study.problem.stages[0].plan.layout, study.noise.max_order)


def state_owners(case: Case) -> StateOwners:
    """Return the ids of the plants that states belong to, in the order of the case."""
    return StateOwners([hydro.id for hydro in case.system.hydros], [plant.id for plant in case.system.thermals])


# Water values as tables, by stage and reservoir: of a policy at a state, or of a simulation.

PERCENTILES = (5, 50, 95)


def policy_water_values(policy: Policy, state: Sequence[float]) -> "pa.Table":
    """Return water values, $ per hm3, at the end of each stage but the last, if the study were in this state then."""
    import pyarrow as pa

    policy.checked_state(state)  # here, for a study of one stage asks no cut
    rows = [
        (stage_id, int(owner_of(name)), value)
        for stage, stage_id in enumerate(policy.stage_ids[:-1])
        for name, value in policy.water_values(stage, state).items()
    ]
    stages, hydros, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "stage_id": pa.array(stages, pa.int32()),
            "hydro_id": pa.array(hydros, pa.int32()),
            "water_value_per_hm3": pa.array(values, pa.float64()),
        }
    )


def simulated_water_values(hydros: "pa.Table") -> "pa.Table":
    """Return mean and percentiles over scenarios, $ per hm3; a stage's value is that of its last block."""
    import pyarrow as pa

    keys = ("stage_id", "hydro_id", "scenario_id", "block_id")
    stage, hydro, scenario, block = (hydros[name].to_numpy() for name in keys)
    order = np.lexsort((block, scenario, hydro, stage))
    stage, hydro, scenario = stage[order], hydro[order], scenario[order]
    is_last = np.append((np.diff(stage) != 0) | (np.diff(hydro) != 0) | (np.diff(scenario) != 0), True)
    stage, hydro = stage[is_last], hydro[is_last]
    values = hydros["water_value_per_hm3"].to_numpy()[order][is_last]
    starts = np.flatnonzero(np.append(True, (np.diff(stage) != 0) | (np.diff(hydro) != 0)))
    groups = np.split(values, starts[1:])
    percentiles = np.array([np.percentile(group, PERCENTILES) for group in groups])
    return pa.table(
        {
            "stage_id": pa.array(stage[starts], pa.int32()),
            "hydro_id": pa.array(hydro[starts], pa.int32()),
            "mean_per_hm3": pa.array([float(group.mean()) for group in groups], pa.float64()),
            **{f"p{p}_per_hm3": pa.array(percentiles[:, column]) for column, p in enumerate(PERCENTILES)},
        }
    )
