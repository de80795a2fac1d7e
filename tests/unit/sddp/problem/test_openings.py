"""The order of openings, and the chains of a backward pass through them."""

import numpy as np
import pytest

from cobre._native import opening_chains
from cobre.sddp.problem.openings import StageOpenings
from cobre.solver.batches import Bases, Realisations

INFLOW = np.array([[5.0, 5.0], [1.0, 2.0], [9.0, 9.0], [4.0, 4.0]])  # 10, 3, 18 and 8 m3/s


def noise(inflow: np.ndarray) -> Realisations:
    return Realisations(inflow, np.zeros((len(inflow), 1)), np.zeros((len(inflow), 0)))


def opening() -> StageOpenings:
    return StageOpenings.of(noise(INFLOW))


def test_openings_go_from_dry_to_wet() -> None:
    assert opening().order.tolist() == [1, 3, 0, 2]
    assert opening().position.tolist() == [2, 0, 3, 1]


def test_sampled_realisation_has_a_position_in_the_order() -> None:
    stage = opening()
    assert stage.positions(stage.realisations, np.array([2, 1, 0], np.int32)).tolist() == [3, 0, 2]
    other = noise(np.array([[0.0, 0.0], [4.5, 4.5], [50.0, 0.0]]))
    assert stage.positions(other, np.array([0, 1, 2], np.int32)).tolist() == [0, 2, 3]


def test_two_chains_go_from_the_drawn_opening_to_both_ends() -> None:
    states, bases = np.array([[7.0], [8.0]]), Bases(np.zeros((2, 3), np.int8), np.zeros((2, 2), np.int32))
    chains = opening().chains(states, bases, np.array([2, 0], np.int32))
    assert chains.start.tolist() == [0, 2, 4, 8, 8]
    assert chains.realisation_index.tolist() == [0, 2, 3, 1, 1, 3, 0, 2]
    assert chains.result_index is not None
    assert chains.result_index.tolist() == [0, 2, 3, 1, 5, 7, 4, 6]
    assert chains.basis_index.tolist() == [0, 0, 1, 1]
    assert chains.states is states
    assert chains.chains_per_point == 2


def test_position_outside_the_order_raises() -> None:
    with pytest.raises(ValueError, match="opening"):
        opening_chains(np.arange(3, dtype=np.int32), np.array([3], np.int32))
