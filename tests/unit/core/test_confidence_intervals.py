"""Confidence intervals of means."""

import numpy as np
import pytest

from cobre.core.confidence import half_width_95, mean_with_half_width, student_quantile


@pytest.mark.parametrize(
    ("confidence", "degrees_of_freedom", "table"),
    [(0.95, 1, 12.7062), (0.95, 2, 4.30265), (0.95, 9, 2.26216), (0.99, 30, 2.75000), (0.9, 120, 1.65765)],
)
def test_quantiles_equal_printed_tables(confidence, degrees_of_freedom, table):
    assert student_quantile(confidence, degrees_of_freedom) == pytest.approx(table, rel=1e-5)


def test_many_degrees_of_freedom_are_nearly_normal():
    assert student_quantile(0.95, 1001) == pytest.approx(student_quantile(0.95, 1000), rel=2e-3)


def test_interval_covers_mean_at_its_confidence():
    draws = np.random.default_rng(5).normal(3.0, 2.0, (4000, 5))
    covered = 0
    for values in draws:
        mean, half_width = mean_with_half_width(values.tolist(), 0.8)
        covered += abs(mean - 3.0) <= half_width
    assert covered / len(draws) == pytest.approx(0.8, abs=0.02)


def test_half_width_shrinks_with_root_of_count():
    assert half_width_95(10.0, 100) == pytest.approx(1.96)
    assert half_width_95(10.0, 400) == pytest.approx(0.98)
