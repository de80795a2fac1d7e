"""Hashes, generators and normal numbers, bit for bit."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_data import PUBLISHED_CASES

from cobre.stochastic.random.pcg64 import Pcg64Sequence, Pcg64Streams, standard_normals
from cobre.stochastic.random.point_sets import choose
from cobre.stochastic.random.seeds import (
    as_seed,
    class_forward_seed,
    forward_seeds,
    grouped_forward_seeds,
    opening_seeds,
    siphash13_bytes,
    stage_seeds,
)

FIXTURES = PUBLISHED_CASES / "noise_fixtures.json"
SEEDS = st.integers(0, 2**64 - 1)
FIELDS = st.integers(0, 2**32 - 1)

# Base seed 42, stage 0: what the Rust program's own test of its openings expects.
GOLDEN = [
    [0.40098936496495646, 0.22792558815859804],
    [-1.3954121776085244, -0.26939366921736746],
    [0.8337031709056368, -1.6199918031824887],
]


def little_endian(value, size):
    return value.to_bytes(size, "little")


def test_golden_openings():
    drawn = standard_normals(Pcg64Streams(opening_seeds(42, np.arange(3), 0)), 2)
    assert drawn.tolist() == GOLDEN


@given(SEEDS, FIELDS, FIELDS, FIELDS)
def test_seeds_are_hashes_of_their_fields(base, first, second, third):
    eight, words = little_endian(base, 8), [little_endian(value, 4) for value in (first, second, third)]
    assert opening_seeds(base, first, second)[0] == siphash13_bytes(eight + words[0] + words[1])
    assert forward_seeds(base, first, second, third)[0] == siphash13_bytes(eight + b"".join(words))
    assert grouped_forward_seeds(base, first, second, third)[0] == siphash13_bytes(b"\x01" + eight + b"".join(words))
    assert stage_seeds(base, first)[0] == siphash13_bytes(eight + words[0])
    assert class_forward_seed(base, "load") == siphash13_bytes(b"\x02" + eight + b"load")
    assert class_forward_seed(base, "inflow") == base


def test_seeds_of_many_are_the_seeds_of_each():
    together = forward_seeds(7, 3, np.arange(50), 2)
    assert together.tolist() == [int(forward_seeds(7, 3, s, 2)[0]) for s in range(50)]
    assert len(set(together.tolist())) == 50


def test_configured_seeds_lose_their_sign():
    assert as_seed(-42) == as_seed(42) == 42


@given(SEEDS)
def test_one_generator_and_many_have_the_same_bits(seed):
    streams = Pcg64Streams(np.array([seed, 1], dtype=np.uint64))
    assert [int(streams.next_u64()[0]) for _ in range(5)] == Pcg64Sequence(seed).next_u64(5).tolist()


def test_streams_advance_independently():
    seeds = opening_seeds(42, np.arange(4), 0)
    apart = [Pcg64Sequence(int(seed)).next_u64(3).tolist() for seed in seeds]
    streams = Pcg64Streams(seeds)
    first = streams.next_u64(np.array([1, 3]))
    both = streams.next_u64()
    assert first.tolist() == [apart[1][0], apart[3][0]]
    assert both.tolist() == [apart[0][0], apart[1][1], apart[2][0], apart[3][1]]


@given(SEEDS, st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=20))
def test_choices_in_a_row_are_single_choices(seed, counts):
    streams = Pcg64Streams(np.array([seed], dtype=np.uint64))
    one_by_one = [int(choose(streams, count)[0]) for count in counts]
    assert Pcg64Sequence(seed).choices(np.array(counts)) == one_by_one
    assert all(0 <= chosen < count for chosen, count in zip(one_by_one, counts, strict=True))


def test_choices_are_even():
    chosen = choose(Pcg64Streams(forward_seeds(42, 1, np.arange(30_000), 0)), 3)
    counts = np.bincount(chosen, minlength=3)
    assert np.abs(counts - 10_000).max() < 400  # five standard deviations


def test_normals_are_normal_and_reach_the_tail():
    drawn = standard_normals(Pcg64Streams(opening_seeds(1, np.arange(20_000), 0)), 20).ravel()
    assert abs(drawn.mean()) < 5 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1.0) < 5 * np.sqrt(2 / drawn.size)
    beyond = np.mean(np.abs(drawn) > 3.654152885361009)
    assert 1.5e-4 < beyond < 4e-4  # 2.58e-4 expected
    assert abs(np.mean(drawn < 1.0) - 0.841345) < 5 * np.sqrt(0.13 / drawn.size)


def test_normals_do_not_depend_on_other_draws():
    seeds = opening_seeds(9, np.arange(2_000), 3)
    together = standard_normals(Pcg64Streams(seeds), 5)
    for start in range(0, 2_000, 500):
        assert np.array_equal(
            standard_normals(Pcg64Streams(seeds[start : start + 500]), 5), together[start : start + 500]
        )


@pytest.mark.skipif(not FIXTURES.exists(), reason=f"there is no {FIXTURES}")
def test_published_openings_and_choices():
    for name, fixture in json.loads(FIXTURES.read_text()).items():
        for stage, expected in enumerate(fixture["openings"]):
            count, dimension = len(expected), len(expected[0])
            seeds = opening_seeds(fixture["tree_seed"], np.arange(count), stage)
            assert standard_normals(Pcg64Streams(seeds), dimension).tolist() == expected, name
        for key, expected in fixture["forward_opening_index_first_iterations"].items():
            iteration, scenario = (int(part[2:]) for part in key.split("_"))
            seeds = forward_seeds(fixture["tree_seed"], iteration, scenario, np.arange(len(expected)))
            assert choose(Pcg64Streams(seeds), 10).tolist() == expected, (name, key)
