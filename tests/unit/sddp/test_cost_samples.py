"""Samples of costs: pooling, and confidence intervals that allow for long tails."""

import math

import numpy as np
import pytest

from cobre.core.confidence import mean_with_half_width
from cobre.core.policy_cost import CostSample, latest, latest_cost, pooled

DRAWN = np.random.default_rng(7).lognormal(size=40).tolist()


def test_pooled_samples_equal_sample_of_all_paths():
    together, parts = (
        CostSample.of(DRAWN),
        pooled([CostSample.of(DRAWN[:1]), CostSample.of(DRAWN[1:9]), CostSample.of(DRAWN[9:])]),
    )
    assert parts.paths == 40
    assert (parts.mean, parts.squares, parts.cubes) == pytest.approx((together.mean, together.squares, together.cubes))


def test_skewed_sample_has_wider_interval_than_students():
    even = [1.0, 2.0, 3.0, 4.0]
    assert CostSample.of(even).half_width(0.95) == pytest.approx(mean_with_half_width(even, 0.95)[1])
    assert CostSample.of(DRAWN).half_width(0.95) > 1.1 * mean_with_half_width(DRAWN, 0.95)[1]


def test_intervals_of_skewed_samples_cover_the_mean():
    """600 samples of 30 lognormal values: Student's interval covers the mean in 88 of 100."""
    generator, mean = np.random.default_rng(3), math.exp(0.5)
    samples = [CostSample.of(row) for row in generator.lognormal(size=(600, 30)).tolist()]
    covered = [abs(sample.mean - mean) <= sample.half_width(0.95) for sample in samples]
    assert 0.92 <= np.mean(covered) <= 0.98


def test_single_path_has_no_interval():
    cost = latest_cost([CostSample.of([5.0])], is_estimate=False)
    assert cost is not None
    assert cost.half_width is None
    assert cost.largest == math.inf


def test_small_iterations_are_pooled_the_newest_first_and_at_most_half_of_all():
    samples = [CostSample.of([float(number), number + 1.0]) for number in range(40)]
    assert [sample.mean for sample in latest(samples, 8)] == [36.5, 37.5, 38.5, 39.5]
    assert len(latest(samples, 10_000)) == 20
    assert latest([*samples, None], 8) == []
    assert latest_cost([*samples, None], is_estimate=False) is None


def test_wider_spread_of_more_iterations_is_used():
    calm, wild = CostSample.of([1.0, 1.1] * 16), CostSample.of([0.0, 9.0] * 8)
    alone, warned = (
        latest_cost([calm, calm], is_estimate=False),
        latest_cost([wild, wild, wild, calm], is_estimate=False),
    )
    assert alone is not None and warned is not None
    assert warned.value == alone.value
    assert warned.half_width > 5.0 * alone.half_width
