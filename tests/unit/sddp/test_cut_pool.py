"""Tests of growth of the cut pool, and of the components that it does not store."""

import numpy as np
import pytest
from solving import train_folder
from systems_water import random_inflows

from cobre._native import CUTS_PER_BLOCK
from cobre.comm.backends.local import LocalCommunicator
from cobre.errors import InternalError
from cobre.sddp.cut_pool import MAX_CHUNK_CUTS, CutPool, CutSet, stored_components
from cobre.solver.program import StageProgram

STORED = [np.array([True, False, True]), np.array([True, True, True])]


def fill_pool(pool, iterations, passes):
    for iteration in range(1, iterations + 1):
        slots = pool.reserve_slots(iteration, passes)
        numbers = np.array(slots, float)
        for stage in range(pool.num_stages):
            slopes = np.zeros((passes, pool.dimension))
            components = pool.components(stage)
            slopes[:, components] = np.outer(numbers, 1.0 + components)
            pool.write(stage, slots, CutSet(100.0 + numbers, slopes))
    return pool


def test_small_pool_is_small_and_large_pool_grows_by_at_most_a_quarter():
    pool = fill_pool(CutPool(LocalCommunicator(), 2, 3), 1, 2)
    assert pool.nbytes == 8 * 2 * 4 * CUTS_PER_BLOCK
    fill_pool(pool, 999, 2)
    widths = [chunk.shape[1] for chunk in pool.rows(0).chunks]
    assert max(widths) == MAX_CHUNK_CUTS
    assert sum(widths) <= 1.25 * pool.count


def test_components_not_stored_read_as_zero():
    pool = fill_pool(CutPool(LocalCommunicator(), 2, 3, STORED), 20, 7)
    numbers = np.arange(140.0)
    cuts = pool.cuts(0)
    assert cuts.intercepts.tolist() == (100.0 + numbers).tolist()
    assert cuts.coefficients.tolist() == np.outer(numbers, [1.0, 0.0, 3.0]).tolist()
    assert pool.stored_cuts(0).coefficients.tolist() == np.outer(numbers, [1.0, 3.0]).tolist()
    assert pool.components(0).tolist() == [0, 2]
    assert pool.rows(0).rows.tolist() == [1, -1, 2]
    assert pool.rows(1).rows is None
    assert pool.nbytes == 8 * (3 + 4) * sum(chunk.shape[1] for chunk in pool.rows(0).chunks)


def test_cut_with_unstored_coefficient_raises():
    pool = CutPool(LocalCommunicator(), 2, 3, STORED)
    assert pool.stored_columns(0, np.array([[5.0, 1.0, 0.0, 2.0]])).tolist() == [[5.0, 1.0, 2.0]]
    with pytest.raises(InternalError, match="depends on a state"):
        pool.stored_columns(0, np.array([[5.0, 1.0, 1e-9, 2.0]]))


def test_cuts_of_a_warm_start_may_depend_on_more_states():
    pool = CutPool(LocalCommunicator(), 2, 3, STORED)
    theirs = CutSet(np.array([1.0]), np.array([[0.0, 4.0, 0.0]]))
    pool.ensure_components(0, theirs.coefficients)
    pool.write(0, pool.reserve_slots(0, 1), theirs)
    assert pool.cuts(0).coefficients.tolist() == [[0.0, 4.0, 0.0]]


def program(autoregression, states=1):
    lags = np.array(autoregression, float)
    whole = object.__new__(StageProgram)
    none = np.zeros(0, np.int32)
    given = {"autoregression": lags, "state_column": np.zeros(states, np.int32), "passed_from": none, "lag_from": none}
    for name, value in given.items():
        object.__setattr__(whole, name, value)
    return whole


def test_lags_are_stored_until_last_reading_stage():
    """Two plants, two lags. The third stage reads lag 2 of the second plant: lag 1 when it leaves the first stage."""
    nothing = [[0.0, 0.0], [0.0, 0.0]]
    programs = [program(nothing), program(nothing), program([[0.5, 0.0], [0.0, 0.2]]), program(nothing)]
    stored = stored_components(programs, is_priced=False)
    assert [flags.astype(int).tolist() for flags in stored] == [
        [1, 0, 1, 0, 0],
        [1, 1, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert all(stored_components(programs, is_priced=True)[-1])


def test_trained_cuts_depend_on_stored_components_only(tmp_path):
    trained = train_folder(random_inflows().write(tmp_path))
    pool = trained.context.pool
    assert not pool.stored_cuts(pool.num_stages - 1).coefficients.size
    assert pool.cuts(0).coefficients.any()
