"""What the scenarios of a simulation cost."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import half_width_95, mean_and_std
from cobre.records import dataclass
from cobre.solver.statistics import SolveStatistics


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
        """Mean and deviation, added in the order of scenarios.

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
        """The cost that a share of the scenarios does not exceed, between neighbours in proportion."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a quantile is a share between 0 and 1, not {share}")
        return float(np.quantile(self.costs, share))
