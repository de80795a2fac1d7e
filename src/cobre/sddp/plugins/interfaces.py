"""Every replaceable decision of the method, in one place.

`RiskMeasure`   how the costs of openings become one number; asked in backward passes and bounds (`plugins.risk`)
`Sampler`       what happens in the scenarios of a forward pass or simulation (`cobre.stochastic.sampling`)
`StoppingRule`  when training has done enough; asked at the end of every iteration (`plugins.stopping`)
`CutSelection`  which cuts stay in the LPs; asked at the end of iterations in which it is due (`plugins.cut_selection`)

All of them must be pure functions of what they are given: every rank calls them with the same arguments and must come
to the same answer, bit for bit. So no clocks, no random state, no memory of earlier calls that the arguments do not
carry. Ranks exchange nothing while a plugin runs.

Each interface says what you must define, what you may define, and what you may rely on. LP money is $ divided by the
case's cost scale.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from cobre.core.arrays import ByteFlags, Floats, Indices, Ints
from cobre.sddp.cuts.oldest_best import OldestBest
from cobre.sddp.events import IterationRecord
from cobre.sddp.stop import StopKind
from cobre.sddp.upper_bounds.result import BoundPlan, UpperBound


class RiskMeasure(ABC):
    """How the costs of a stage's openings become one number: a weighted mean of them.

    You must define `weights`. The measure of stage t weighs the openings of stage t + 1 when cuts of stage t are made;
    that of the first stage also weighs its own openings in the lower bound.

    The measure must be coherent: the weighted mean, as a function of the costs, is convex, and the weights are its
    subgradient. Otherwise cuts are no lower bounds.
    """

    @abstractmethod
    def weights(self, costs: Floats) -> Floats:
        """The weight of each opening at each trial point.

        costs: trial points x openings, LP money; openings are equally likely. Returns an array of the same shape with
        weights of 0 or more; each row adds up to 1. The mean of four openings: ``np.full_like(costs, 0.25)``.
        """


class Sampler(Protocol):
    """What happens in the scenarios of a forward pass or a simulation: their noise, stage by stage.

    You must define all four. Draws depend on (iteration, scenario, stage) alone: whoever asks for scenario 7, alone or
    among others, on any rank, gets the same numbers. Iterations count from 1; simulations ask for iteration 0, and
    evaluations during training set bit 31, so that they meet noise of their own.
    """

    def sample(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Floats:
        """Noise vectors, scenarios x entities with noise; `scenarios` are numbers in the whole study, from 0."""

    @property
    def is_in_sample(self) -> bool:
        """Whether every scenario draws one of the stage's openings; then `opening_indices` is called, not `sample`."""

    def opening_indices(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Indices:
        """Which opening of the stage each scenario draws, from 0; called only where `is_in_sample`."""

    def for_scenarios(self, total: int) -> "Sampler":
        """The same draws where `total` scenarios take part at a time: some methods spread them over all of these."""


class StoppingRule(ABC):
    """When a training run has done enough.

    You must define `reason_to_stop`. You may define `kind`, and ask for a simulation or an upper bound before you
    judge with `needs_simulation` and `needs_bound`.

    You may rely on: `history` has at least one record and grows by one in each iteration, also when a run is resumed;
    bounds and costs are the same on all ranks. Times are those of the rank that asks, and rank 0's answer counts.
    """

    @property
    def kind(self) -> StopKind:
        """What the run's results name as the cause when it ends by this rule."""
        return StopKind.OTHER_RULE

    def needs_simulation(self, history: Sequence[IterationRecord]) -> int:
        """How many simulated paths the rule wants to see now; 0: none.

        All ranks must come to the same number, so it may depend on iterations and bounds, but not on times.
        """
        return 0

    def needs_bound(self, history: Sequence[IterationRecord]) -> BoundPlan | None:
        """The upper bound that the rule wants to see now; None: none. Not by times either."""
        return None

    @abstractmethod
    def reason_to_stop(
        self, history: Sequence[IterationRecord], simulated: Floats | None = None, bound: UpperBound | None = None
    ) -> str | None:
        """A reason for people, such as "iteration limit of 50 reached", or None to go on.

        simulated: costs in $ of at least as many paths as `needs_simulation` asked for, in order; None where it asked
        for none. bound: what `needs_bound` asked for. Also called before the first iteration of a resumed run, with
        neither.
        """


class CutsOfStage(Protocol):
    """The cuts of one stage as a selection sees them, the oldest first."""

    def values_at(self, states: Floats) -> Floats:
        """States x cuts: the value of every cut at every state, in LP money."""

    def values_from(self, states: Floats, first: int) -> Floats:
        """The same for the cuts from place `first` on."""

    def __len__(self) -> int:
        """The number of cuts."""


class CutSelection(ABC):
    """Which cuts are active, that is, stay in the LPs of forward and backward passes.

    You must define `is_due` and `choose`. You may define `reads_states`, and `new_memory` with `choose_again`.

    You may rely on: inactive cuts are kept and may become active again; the lower bound and simulations use all cuts,
    so that a selection changes how fast training is and never whether a bound is valid.
    """

    @property
    def reads_states(self) -> bool:
        """Whether `choose` looks at visited states; if not, they are neither exchanged nor kept, and it gets none."""
        return True

    def new_memory(self) -> OldestBest | None:
        """What `choose_again` keeps of a stage from call to call; None: `choose` is called, with everything anew."""
        return None

    def choose_again(
        self, memory: OldestBest, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int
    ) -> ByteFlags:
        """The same answer as `choose`, from what is new: cuts and states begin with those of the last call.

        Called only where `new_memory` gives a memory; define both or neither.
        """
        raise NotImplementedError

    @abstractmethod
    def is_due(self, iteration: int) -> bool:
        """Whether to choose at the end of this iteration (from 1), as in ``iteration % 5 == 0``."""

    @abstractmethod
    def choose(self, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int, active: ByteFlags) -> ByteFlags:
        """1 for each cut that is to be active, 0 for the others.

        cuts: all that the stage ever got, the oldest first. states: visited states x components that cuts depend on,
        by iteration, equally many in each. created: by cut, the iteration in which it was made; 0: loaded from
        elsewhere. active: by cut, whether it is now.
        """
