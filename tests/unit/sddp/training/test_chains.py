"""Tests of blocks of openings: their number, their openings and the order of these."""

from itertools import pairwise

import numpy as np
import pytest

from cobre._native import opening_blocks, opening_distances
from cobre.sddp.problem.openings import StageOpenings
from cobre.sddp.training.chains import (
    MIN_OPENINGS_AROUND_CENTRE,
    StageBlocks,
    block_limits,
    number_of_blocks,
)
from cobre.solver.batches import Bases, Realisations


def noise(inflow):
    return Realisations(inflow, np.zeros((len(inflow), 1)), np.zeros((len(inflow), 0)))


def on_a_line(*places):
    at = np.array(places, np.float64)
    return np.abs(at[:, None] - at[None])


def limits(*sizes):
    return np.array(sizes, np.int32)


EVEN = limits(3, 3)


def as_lists(found):
    ends = np.add.accumulate(found.sizes)
    return [found.order[end - size : end].tolist() for end, size in zip(ends, found.sizes, strict=True)]


def length(distances, blocks, sampled):
    """Return the length of jumps from the sampled opening, then of steps."""
    return sum(distances[sampled, block[0]] + sum(distances[a, b] for a, b in pairwise(block)) for block in blocks)


@pytest.mark.parametrize(
    ("passes", "openings", "blocks"),
    [(1, 20, 8), (32, 20, 8), (33, 20, 4), (200, 20, 4), (257, 20, 2), (1025, 20, 1), (1, 10, 4), (1, 3, 1), (1, 1, 1)],
)
def test_few_passes_have_many_blocks(passes, openings, blocks):
    assert number_of_blocks(passes, openings) == blocks


@pytest.mark.parametrize(
    ("passes", "openings", "sizes"),
    [(1, 20, [3] * 8), (32, 10, [3] * 4), (200, 20, [8, 6, 4, 2]), (300, 20, [14, 7]), (2000, 20, [20])],
)
def test_many_passes_have_blocks_of_falling_sizes(passes, openings, sizes):
    assert block_limits(passes, openings).tolist() == sizes


def test_blocks_keep_to_falling_limits():
    places = np.random.default_rng(3).normal(size=(20, 30))
    blocks_of_openings = as_lists(opening_blocks(opening_distances(places, places), 7, limits(8, 6, 4, 2)))
    assert sorted(opening for block in blocks_of_openings for opening in block) == list(range(20))
    sizes = sorted(map(len, blocks_of_openings), reverse=True)
    assert all(size <= limit + 1 for size, limit in zip(sizes, (8, 6, 4, 2), strict=True))  # all were raised by one
    line = on_a_line(0.0, 1.0, 2.0, 50.0, 90.0, 91.0)  # far from the sampled opening joints save most
    assert as_lists(opening_blocks(line, 0, limits(3, 2, 1))) == [[0], [1, 2], [3, 4, 5]]


def test_distances_are_sums_of_weighted_differences():
    openings = np.array([[0.0, 0.0, 7.0], [2.0, 32.0, 7.0]])  # deviations 1, 16 and 0: weights 1, 1 / 8 and none
    others = np.array([[1.0, 0.0, 9.0], [2.0, 32.0, 0.0], [0.0, 8.0, 7.0]])
    assert opening_distances(openings, openings).tolist() == [[0.0, 6.0], [6.0, 0.0]]
    assert opening_distances(openings, others).tolist() == [[1.0, 5.0], [6.0, 0.0], [1.0, 5.0]]


def test_neighbours_on_a_line_form_a_block():
    distances = on_a_line(0.0, 100.0, 1.0, 101.0, 2.0, 102.0)
    assert as_lists(opening_blocks(distances, 0, EVEN)) == [[0, 2, 4], [1, 3, 5]]
    assert as_lists(opening_blocks(distances, 5, EVEN)) == [[4, 2, 0], [5, 3, 1]]


def test_one_block_is_one_chain_from_the_sampled_opening():
    assert as_lists(opening_blocks(on_a_line(3.0, 0.0, 1.0, 2.0), 1, limits(4))) == [[1, 2, 3, 0]]


@pytest.mark.parametrize("blocks", [1, 2, 4, 7, 8, 13, 20])
@pytest.mark.parametrize("sampled", [0, 11])
def test_blocks_hold_every_opening_once(blocks, sampled):
    places = np.random.default_rng(blocks).normal(size=(20, 30))
    distances = opening_distances(places, places)
    blocks_of_openings = as_lists(opening_blocks(distances, sampled, limits(*[-(-20 // blocks)] * blocks)))
    assert sorted(opening for block in blocks_of_openings for opening in block) == list(range(20))
    assert len(blocks_of_openings) == blocks
    # Of one block too many, the two shortest together may be longer than the average.
    assert max(map(len, blocks_of_openings)) <= max(-(-20 // blocks), 2 * 20 // (blocks + 1))
    assert all(distances[sampled, block[0]] <= distances[sampled, block[-1]] for block in blocks_of_openings)
    in_order = [part.tolist() for part in np.array_split(np.arange(20), blocks)]
    assert length(distances, blocks_of_openings, sampled) <= length(distances, in_order, sampled)


def test_wrong_block_sizes_raise():
    with pytest.raises(ValueError, match="square"):
        opening_blocks(np.zeros((2, 3)), 0, limits(2))
    with pytest.raises(ValueError, match="no such opening"):
        opening_blocks(np.zeros((3, 3)), 3, limits(3))
    with pytest.raises(ValueError, match="number of openings"):
        opening_blocks(np.zeros((3, 3)), 0, limits(1, 1, 1, 1))
    with pytest.raises(ValueError, match="longest first"):
        opening_blocks(np.zeros((3, 3)), 0, limits(1, 2))
    with pytest.raises(ValueError, match="columns"):
        opening_distances(np.zeros((3, 3)), np.zeros((1, 2)))


@pytest.fixture
def stage():
    inflow = np.array([[5.0, 5.0], [1.0, 2.0], [9.0, 9.0], [4.0, 4.0], [5.0, 6.0]])
    return StageBlocks.of(StageOpenings.of(noise(inflow)), limits(3, 3))


def test_every_block_is_a_chain_from_the_basis_of_its_point(stage):
    bases = Bases(np.zeros((2, 3), np.int8), np.zeros((2, 2), np.int32))
    states = np.array([[7.0], [8.0]])
    positions = stage.openings.position[np.array([2, 0], np.int32)]
    chains = stage.chains(states, bases, positions)
    assert chains.chains_per_point == 2
    assert chains.basis_index.tolist() == [0, 0, 1, 1]
    assert chains.start[0] == 0
    assert chains.start[2] == 5
    assert chains.start[4] == 10
    for point in range(2):
        solved = chains.realisation_index[5 * point : 5 * point + 5]
        assert sorted(solved.tolist()) == [0, 1, 2, 3, 4]
        assert (chains.result_index[5 * point : 5 * point + 5] == 5 * point + solved).all()


def two_points(openings, limits, *sampled):
    stage = StageBlocks.of(openings, limits)
    bases, states = Bases(np.zeros((2, 3), np.int8), np.zeros((2, 2), np.int32)), np.array([[7.0], [8.0]])
    return stage, stage.chains(states, bases, openings.position[np.array(sampled, np.int32)])


def test_many_openings_are_solved_from_the_central_one_at_every_point():
    openings = StageOpenings.of(noise(np.random.default_rng(5).normal(size=(MIN_OPENINGS_AROUND_CENTRE, 3))))
    stage, chains = two_points(openings, limits(8, 8), 2, 1)
    assert stage.centre == np.abs(stage.distances).sum(axis=1).argmin()
    assert chains.first_realisation.tolist() == [stage.centre, stage.centre]
    half = len(chains.realisation_index) // 2
    assert chains.realisation_index[:half].tolist() == chains.realisation_index[half:].tolist()
    assert chains.realisation_index[:half].tolist() == stage.order_from(stage.centre).tolist()


def test_few_openings_are_solved_from_the_first_one_of_the_first_block():
    openings = StageOpenings.of(noise(np.random.default_rng(5).normal(size=(MIN_OPENINGS_AROUND_CENTRE - 1, 3))))
    stage, chains = two_points(openings, limits(8, 8), 2, 1)
    half = len(chains.realisation_index) // 2
    for point, sampled in enumerate((2, 1)):
        solved = chains.realisation_index[half * point : half * (point + 1)]
        assert solved.tolist() == stage.order_from(sampled).tolist()
        assert chains.first_realisation[point] == solved[0]


def test_single_block_starts_from_sampled_opening(stage):
    alone = StageBlocks.of(stage.openings, limits(5))
    bases, states = Bases(np.zeros((2, 3), np.int8), np.zeros((2, 2), np.int32)), np.array([[7.0], [8.0]])
    chains = alone.chains(states, bases, stage.openings.position[np.array([2, 1], np.int32)])
    assert chains.first_realisation is None
    assert chains.realisation_index[[0, 5]].tolist() == [2, 1]


def test_rank_without_paths_has_no_chains(stage):
    none = Bases(np.zeros((0, 3), np.int8), np.zeros((0, 2), np.int32))
    chains = stage.chains(np.zeros((0, 1)), none, np.zeros(0, np.int32))
    assert chains.start.tolist() == [0]
    assert len(chains.realisation_index) == len(chains.basis_index) == 0


def test_out_of_sample_realisation_starts_from_nearest_opening(stage):
    sampled = noise(np.array([[9.5, 9.0], [1.0, 1.0], [4.9, 6.2]]))
    rows = np.array([2, 0, 1], np.int32)
    assert stage.openings.order[stage.positions(sampled, rows)].tolist() == [4, 2, 1]
    own = stage.openings.realisations
    assert stage.openings.order[stage.positions(own, rows)].tolist() == [2, 0, 1]
