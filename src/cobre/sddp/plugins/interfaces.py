"""Every replaceable decision of the method, in one place.

All of them must be pure functions of what they are given: ranks call them side by side and must come to one answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices, Ints
from cobre.sddp.cuts.oldest_best import OldestBest
from cobre.sddp.events import IterationRecord
from cobre.sddp.stop import StopKind
from cobre.sddp.upper_bounds.result import BoundPlan, UpperBound


class RiskMeasure(ABC):
    """How the costs of openings become one number."""

    @abstractmethod
    def weights(self, costs: Floats) -> Floats:
        """Weights of the openings, which are equally likely: for every trial point (rows) a set that adds up to one."""


class Sampler(Protocol):
    """What happens in the scenarios of a forward pass or a simulation; `cobre.stochastic.sampling` has the schemes."""

    def sample(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Floats:
        """The noise of some scenarios (rows), by their numbers in the whole study, at one stage."""

    @property
    def is_in_sample(self) -> bool:
        """Whether all noise comes from the openings."""

    def opening_indices(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Indices:
        """Which opening each scenario meets; only where all noise comes from the openings."""

    def for_scenarios(self, total: int) -> "Sampler":
        """The same schemes where `total` scenarios take part at a time."""


class StoppingRule(ABC):
    """When a training run has done enough."""

    @property
    def kind(self) -> StopKind:
        """What a run is said to have ended by when it ends by this rule."""
        return StopKind.OTHER_RULE

    def needs_simulation(self, history: Sequence[IterationRecord]) -> int:
        """How many simulated paths the rule wants to see before it is asked; 0: none.

        All ranks must come to the same number, so it may depend on iterations and bounds, but not on times.
        """
        return 0

    def needs_bound(self, history: Sequence[IterationRecord]) -> BoundPlan | None:
        """The upper bound that the rule wants to see before it is asked; the same on all ranks, as above."""
        return None

    @abstractmethod
    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """Words for a person, or None to go on; asked after every iteration.

        simulated: costs in $ of at least as many paths as were asked for, in order, under the present policy.
        bound: the upper bound that was asked for.
        """


class CutsOfStage(Protocol):
    """The cuts of one stage as a selection sees them, in order of birth."""

    def values_at(self, states: Floats) -> Floats:
        """States x cuts: the height of every cut at every state, in LP money."""

    def values_from(self, states: Floats, first: int) -> Floats:
        """The same for the cuts from the place `first` on."""

    def __len__(self) -> int:
        """How many there are."""


class CutSelection(ABC):
    """Which cuts stay in the LPs of forward and backward passes. The lower bound keeps all."""

    @property
    def reads_states(self) -> bool:
        """Whether `choose` looks at visited states; where it does not, none are exchanged or kept, and none come."""
        return True

    def new_memory(self) -> OldestBest | None:
        """What `choose_again` keeps of a stage from one look to the next; None: `choose` looks at everything anew."""
        return None

    def choose_again(
        self, memory: OldestBest, cuts: CutsOfStage, states: Floats, born: Ints, iteration: int
    ) -> NDArray[np.uint8]:
        """The same as `choose`, with what was found out before. Cuts and states begin with those of the last time.

        Asked for only where `new_memory` gives a memory; define both or neither.
        """
        raise NotImplementedError

    @abstractmethod
    def is_due(self, iteration: int) -> bool:
        """Whether to look at this iteration's end."""

    @abstractmethod
    def choose(
        self, cuts: CutsOfStage, states: Floats, born: Ints, iteration: int, in_play: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """1 for each cut that stays or comes back.

        cuts: all that a stage ever got, in order of birth. states: the trial points that were visited so far, in order
        of iterations, as many in each. in_play: 1 for each cut that counts now.
        """
