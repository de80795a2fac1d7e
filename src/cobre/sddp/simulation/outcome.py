"""What the LPs of one stage decided in some scenarios, in plain units and $."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints
from cobre.core.confidence import half_width_95, mean_and_std
from cobre.records import dataclass
from cobre.sddp.lp.build import StageLp
from cobre.sddp.stage_solve import StageBatch
from cobre.sddp.tree.scenario_tree import ScenarioTree
from cobre.solver.batches import Realisations, SolveStatistics

# Scenarios that are paths of a tree.


def chosen_paths(tree: ScenarioTree, paths: Ints | None, scenarios: Sequence[int] | Indices) -> Ints:
    """Return the nodes (scenario, stage) of scenarios: as drawn, or the paths of the tree one by one."""
    numbers = np.array(scenarios, np.int64)
    found: Ints = tree.paths()[numbers if paths is None else paths[numbers]]
    return found


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """S scenarios. Decisions and prices have a last column of zeros, which the index ABSENT (-1) picks."""

    lp: StageLp
    decisions: Floats  # S x (columns + 1)
    prices: Floats  # S x (rows + 1): $ for one more unit on the right side
    state: Floats  # S x entries, at the beginning
    inflow: Floats  # S x N, realised
    load: Floats  # S x B, without the factors of blocks
    availability: Floats  # S x R
    total_cost: Floats  # S, $ of this stage's money, with the future
    future_cost: Floats  # S, discounted to this stage

    @classmethod
    def of(
        cls,
        lp: StageLp,
        batch: StageBatch,
        state: Floats,
        noise: Realisations,
        cost_scale: float,
        own: slice = slice(None),
    ) -> "StageOutcome":
        """Read some rows of a batch, and undo all scaling of columns, rows and money."""
        program = lp.program
        return cls(
            lp=lp,
            decisions=_with_zero(batch.primal[own] * program.column_scale),
            prices=_with_zero(batch.dual[own] * (program.row_scale * cost_scale)),
            state=state[own],
            inflow=batch.inflow[own],
            load=noise.load_mw[own],
            availability=noise.availability[own],
            total_cost=batch.objective[own] * cost_scale,
            future_cost=batch.future_cost[own] * (lp.plan.data.discount * cost_scale),
        )

    @property
    def storage(self) -> Floats:
        """S x N, hm3, at the beginning of the stage."""
        return self.state[:, : self.lp.plan.num_hydros]

    @property
    def scenarios(self) -> int:
        """S, the number of scenarios."""
        return len(self.total_cost)

    def values(self, columns: Indices) -> Floats:
        """Return decisions, S x the shape of the columns; 0 where a stage has no such decision."""
        return self.decisions[:, columns]

    def duals(self, rows: Indices) -> Floats:
        """Return duals, S x the shape of the rows: $ for one more unit on the right-hand side."""
        return self.prices[:, rows]

    def by_block(self, columns: Indices) -> Floats:
        """Return S x entities x K, from columns by entity or by entity and volume."""
        values = self.values(columns)
        if values.ndim == 2:
            values = values[:, :, None]
        return np.broadcast_to(values, (*values.shape[:2], self.lp.plan.num_blocks))


def _with_zero(table: Floats) -> Floats:
    """Append a column of zeros; negative zeros are normalised to +0."""
    return np.concatenate([table + 0.0, np.zeros((len(table), 1))], axis=1)


def running_sum(values: Floats) -> Floats:
    """Sum over the last axis, one after the other: the bits do not depend on how many scenarios lie side by side."""
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    total: Floats = np.add.accumulate(values, axis=-1)[..., -1]
    return total


def sum_into(values: Floats, owner: Indices, count: int) -> Floats:
    """Sum S x F x K into S x `count` x K by the owner of each F, in order; owner -1 is left out."""
    total = np.zeros((count, values.shape[0], values.shape[2]))
    known = owner >= 0
    np.add.at(total, owner[known], np.moveaxis(values, 1, 0)[known])
    return np.moveaxis(total, 0, 1)


# What the scenarios of a simulation cost.


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """Costs in $ of the first stage's money, in the order of scenarios."""

    costs: Floats
    mean: float
    std: float
    solver: SolveStatistics  # what this rank's solver did

    @classmethod
    def of(
        cls, costs: Floats, probabilities: Floats | None = None, solver: SolveStatistics | None = None
    ) -> "SimulationOutcome":
        """Compute mean and deviation, added in the order of scenarios.

        probabilities: of the scenarios, where they are all paths of a tree; None: a sample.
        """
        if probabilities is None:
            mean, std = mean_and_std(costs.tolist())
        else:
            mean = float(np.add.accumulate(probabilities * costs)[-1])
            std = float(np.add.accumulate(probabilities * (costs - mean) ** 2)[-1] ** 0.5)
        return cls(costs, mean, std, solver or SolveStatistics())

    @property
    def half_width(self) -> float:
        """Half width of the 95 % confidence interval of the mean; 0 for a single scenario, whose spread is unknown."""
        return half_width_95(self.std, len(self.costs))

    def quantile(self, share: float) -> float:
        """Return the cost that a share of the scenarios does not exceed, interpolated between neighbours."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a quantile is a share between 0 and 1, not {share}")
        return float(np.quantile(self.costs, share))
