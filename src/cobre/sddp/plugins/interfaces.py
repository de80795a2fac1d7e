"""Replaceable decisions of the method: what a plug-in must define, may define, and may rely on.

`RiskMeasure`   aggregates the costs of openings; called in backward passes and bounds (`plugins.risk`)
`Sampler`       draws the noise of forward passes and simulations (`cobre.stochastic.sampling`)
`StoppingRule`  ends training; called at the end of every iteration (`cobre.core.stopping`, which defines it)
`CutSelection`  decides which cuts are active; called after iterations in which it is due (`plugins.cut_selection`)

Give objects to `cobre.train`, or register their classes by an entry point (`plugins.user_plugins`). All of them must be
pure functions of their arguments: on every rank, the same arguments give the same result, bit for bit. So no clocks, no
random state, no memory of earlier calls. Ranks call them for different parts of the work, and not equally often, so
they must not communicate:

`weights` of a risk measure    a rank's own trial points in the backward pass; the same on all ranks in bounds
`weights_for` of the same      over a tree, on all ranks alike, for the children of every node
`sample`, `opening_indices`    the scenarios that a rank or its team solves; `for_scenarios` is the same on all ranks
stopping rules                 on all ranks, with the same bounds and costs, but with times of their own; rank 0 decides
`choose` of a cut selection    the stages that a rank has for this; `is_due` and `reads_states` are asked on all ranks

Each interface says what you must define, what you may define, and what you may rely on. A *scaled cost* is $ divided by
`Problem.cost_scale`, as in the objectives of LPs, in cuts and in their values; bounds and results are in $.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from cobre.core.arrays import ByteFlags, Floats, Indices, Ints
from cobre.core.stopping import StoppingRule
from cobre.errors import ValidationError
from cobre.sddp.cut_pool import CutsOfStage

__all__ = ["CutSelection", "RiskMeasure", "Sampler", "StoppingRule"]

SIMULATION_ITERATION = 0  # in which simulations draw: before the first of training
EVALUATION_BIT = 1 << 31  # set in the number of an iteration whose policy is evaluated during training
EQUAL_PROBABILITIES = 1e-12  # probabilities that differ by less are equal: they were normalised, with rounding


class RiskMeasure(ABC):
    """Aggregates the costs of a stage's openings into one number, as a weighted mean of them.

    You must define `weights`. You may define `spectral_weights`, if nothing but the order of costs counts, and
    `weights_for`, which trees need whose children are not equally likely.

    `Problem.risk` has one measure for each stage: that of stage t weighs the openings of stage t + 1 when cuts of stage
    t are made, and that of the first stage also its own openings in the lower bound.

    The measure must be coherent: the weighted mean is convex in the costs, and the weights are its subgradient.
    Otherwise cuts are not lower bounds.

    The name of the class and its fields identify the policy: a policy that was stored under other ones is refused. So
    keep all parameters in dataclass fields or attributes that are set once, as numbers, strings, arrays or tuples of
    them, and nothing else there, such as a cache. The worst case:

    >>> import cobre, numpy as np
    >>> class WorstCase(cobre.RiskMeasure):
    ...     def weights(self, costs):
    ...         is_worst = np.arange(costs.shape[1]) == costs.argmax(axis=1)[:, None]
    ...         return is_worst.astype(float)
    >>> WorstCase().weights(np.array([[1.0, 3.0, 2.0]]))
    array([[0., 1., 0.]])
    """

    @abstractmethod
    def weights(self, costs: Floats) -> Floats:
        """Return the weight of each opening at each trial point.

        costs: trial points x openings, scaled, read-only; openings are equally likely. Returns an array of its shape
        with weights of 0 or more; each row adds up to 1. A row may only depend on its own costs: the trial points
        in a call depend on the number of workers. The mean of four openings: ``np.full_like(costs, 0.25)``.
        """

    def spectral_weights(self, openings: int) -> Floats | None:
        """Return the weights by descending cost: the most expensive opening first, whatever the costs are.

        Then the solver makes a cut itself as soon as a trial point is solved for all openings, without a wait of ranks
        for each other; `weights` must agree, with openings of equal cost in their order. None, the default: costs
        themselves count, and `weights` is called.
        """
        return None

    def weights_for(self, costs: Floats, probabilities: Floats) -> Floats:
        """Return the weight of each child of a node, where children of an enumerated tree have their own probabilities.

        costs: by child, scaled. probabilities: by child, 0 or more; they add up to 1. Returns one weight of 0 or more
        for each child; they add up to 1. The mean: ``return probabilities``.

        The default calls `weights` where all children are equally likely, and raises `ValidationError` elsewhere:
        weights of equally likely openings say nothing about others.
        """
        if np.ptp(probabilities) > EQUAL_PROBABILITIES:
            raise ValidationError(
                f"{type(self).__name__} has no weights for unequal probabilities ({_listed(probabilities)}): "
                "define weights_for(costs, probabilities), or make the children of every node equally likely"
            )
        weights: Floats = self.weights(costs[None])[0]
        return weights


def _listed(probabilities: Floats) -> str:
    """Return the first few probabilities for a message."""
    first = ", ".join(f"{probability:g}" for probability in probabilities[:4].tolist())
    return first if len(probabilities) <= 4 else f"{first}, ..."


class Sampler(Protocol):
    """Draws the noise of the scenarios of a forward pass or a simulation, stage by stage.

    You must define `is_in_sample`, `for_scenarios`, `opening_indices` and `sample`; the one of the last two that is not
    used may raise. You may define `is_representative`, and `for_study(noise)`, which returns the sampler for a study:
    it is called once on each rank with the `NoiseModel`, whose `openings` a sampler may need.

    A draw only depends on (iteration, scenario, stage): scenario 7 has the same numbers in any set of scenarios, on any
    rank. Stages are indices from 0, not ids. Iterations of training count from 1; simulations
    have the number `SIMULATION_ITERATION`, and evaluations during training set `EVALUATION_BIT` in the number of the
    iteration, so that they draw separate noise. One that repeats two openings, scenario by scenario:

    >>> import numpy as np
    >>> class EvenAndOdd:
    ...     is_in_sample = True
    ...
    ...     def sample(self, iteration, scenarios, stage):
    ...         raise NotImplementedError("all scenarios draw openings")
    ...
    ...     def opening_indices(self, iteration, scenarios, stage):
    ...         return np.asarray(scenarios) % 2
    ...
    ...     def for_scenarios(self, total):
    ...         return self
    >>> EvenAndOdd().opening_indices(1, range(5), 0)
    array([0, 1, 0, 1, 0])
    """

    def sample(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Floats:
        """Return standard normal noise, scenarios x entities with noise, without a unit; it is correlated already.

        scenarios: numbers in the whole study, from 0. Columns are ordered as `cobre.stochastic.layout.NoiseLayout` says
        (inflows, loads, sources); `NoiseModel.realise` makes m3/s, MW and shares out of them.
        """

    @property
    def is_in_sample(self) -> bool:
        """Whether every scenario draws one of the stage's openings; then `opening_indices` is called, not `sample`."""

    @property
    def is_representative(self) -> bool:
        """Whether all openings are drawn equally often, so that the mean cost of paths is that of the policy.

        A sampler of a user need not define it: False.
        """

    def opening_indices(self, iteration: int, scenarios: Sequence[int] | Indices, stage: int) -> Indices:
        """Return the opening, from 0, that each scenario draws at the stage; called only if `is_in_sample`."""

    def for_scenarios(self, total: int) -> "Sampler":
        """Return a sampler for `total` scenarios at a time, over which stratified methods (such as Sobol) spread."""


class CutSelection(ABC):
    """Decides which cuts are active, that is, part of the LPs of forward and backward passes.

    You must define `is_due` and `choose`. You may define `reads_states`, `spares_first_stage`, and `new_state` with
    `update`.

    You may rely on: inactive cuts are kept and may become active again; the lower bound uses all cuts, and so do
    simulations unless `simulation.cut_set` is `active`, so that a selection never changes the validity of a bound.
    Every ten iterations, keep the cuts of the last fifty:

    >>> import cobre
    >>> class LastFifty(cobre.CutSelection):
    ...     reads_states = False
    ...
    ...     def is_due(self, iteration):
    ...         return iteration % 10 == 0
    ...
    ...     def choose(self, cuts, states, created, iteration, active):
    ...         return (created > iteration - 50).astype(active.dtype)
    """

    @property
    def spares_first_stage(self) -> bool:
        """Whether the cuts of the first stage are never chosen from: all of them stay active. False by default."""
        return False

    @property
    def reads_states(self) -> bool:
        """Whether `choose` looks at visited states; if not, they are neither exchanged nor kept, and it gets none."""
        return True

    def new_state(self) -> object | None:
        """Return an object of your own that `update` gets at each call for a stage; None: `choose` is called instead.

        The caller keeps one for each stage and never looks into it. It is kept in memory only: a run that is resumed
        begins with a new one, and so does a stage whose cuts have changed their slots.
        """
        return None

    def update(self, state: Any, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int) -> ByteFlags:
        """Return the same flags as `choose`, bit for bit, from what is new since the last call. Define both or neither.

        state: of `new_state`; only you change it. You may rely on: `cuts` and `states` begin with those of the
        last call with the same state; a new state gets all of them. The present flags are not given, unlike in
        `choose`: an answer that depended on them would differ between a new state and one that has seen every call.
        """
        raise NotImplementedError

    @abstractmethod
    def is_due(self, iteration: int) -> bool:
        """Return whether to choose at the end of this iteration (from 1), as in ``iteration % 5 == 0``."""

    @abstractmethod
    def choose(self, cuts: CutsOfStage, states: Floats, created: Ints, iteration: int, active: ByteFlags) -> ByteFlags:
        """Return 1 for each cut that is to be active, 0 for the others.

        cuts: all that the stage ever got, the oldest first. states: visited states x components that cuts depend on,
        by iteration, equally many in each; in the units of states, hm3 for storages and water in transit, m3/s for
        lagged inflows, MW for commitments, not scaled. created: by cut, the iteration in which it was made; 0: loaded
        from elsewhere. active: by cut, whether it is now.
        """
