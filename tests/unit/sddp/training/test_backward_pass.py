"""The backward pass gives the same cuts, whether the solver writes them or ranks average and exchange them."""

import pytest
from contexts import context_of, iterated
from systems_water import random_inflows

from cobre.errors import InternalError
from cobre.sddp.training.passes import add_cuts, plan_backward, run_forward

ITERATIONS = 4
PASSES = {"training.selection": {"method": "sampled", "forward_passes": 3}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return random_inflows().write(tmp_path_factory.mktemp("random"))


class WeightsOnly:
    """Risk measure without spectral_weights."""

    def __init__(self, inner):
        self.weights = inner.weights

    def spectral_weights(self, openings):
        assert openings > 0


def with_risk(context, changed):
    object.__setattr__(context.problem, "risk", tuple(map(changed, context.problem.risk)))
    return context


def pool_bits(context):
    pool = context.pool
    return [pool.intercepts(stage).tobytes() + pool.cuts(stage).coefficients.tobytes() for stage in range(2)]


def test_both_ways_give_the_same_cuts(folder):
    made, averaged = context_of(folder, PASSES), with_risk(context_of(folder, PASSES), WeightsOnly)
    assert iterated(made, ITERATIONS) == iterated(averaged, ITERATIONS)
    assert pool_bits(made) == pool_bits(averaged)


def test_cut_on_unstored_state_raises(folder):
    """Cuts of this study depend on both storages; a pool that stores none of them would lose them."""
    context = context_of(folder, PASSES, has_components=False)
    paths = run_forward(context, 1)
    slots = context.pool.reserve_slots(1, context.split.total)
    (plan,) = plan_backward(context, paths, slots, [1])
    with pytest.raises(InternalError, match="a cut of stage 0 depends on a state"):
        add_cuts(context, 1, plan, paths)
