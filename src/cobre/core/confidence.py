"""Confidence intervals of means: by the normal distribution, and by Student's t where values are few."""

import math
from collections.abc import Sequence

from cobre.core.arrays import sum_in_order

# Degrees of freedom beyond which the normal distribution is near enough.
NEARLY_NORMAL = 1000
BISECTIONS = 60
# 95 % of the normal distribution lie within this many standard deviations of the mean; rounded, as in printed tables.
NORMAL_QUANTILE_95 = 1.96


def half_width_95(std: float, count: int) -> float:
    """Return half of the 95 % confidence interval of the mean of `count` values with sample deviation `std`.

    >>> half_width_95(4.0, 16)
    1.96
    """
    return float(NORMAL_QUANTILE_95 * std / count**0.5)


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and sample standard deviation (0 for a single value); values are added in their order.

    >>> mean_and_std([1.0, 3.0])
    (2.0, 1.4142135623730951)
    """
    mean = sum_in_order(values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, float((sum_in_order((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5)


def mean_with_half_width(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the mean and the half width of its two-sided confidence interval, which is infinite for a single value.

    Values are added in their order."""
    count = len(values)
    mean = sum_in_order(values) / count
    if count == 1:
        return mean, math.inf
    variance = sum_in_order((value - mean) ** 2 for value in values) / (count - 1)
    return mean, student_quantile(confidence, count - 1) * math.sqrt(variance / count)


def skewed_half_width(count: int, squares: float, cubes: float, confidence: float) -> float:
    """Return half of the confidence interval of the mean of `count` values whose distribution may be skewed.

    squares, cubes: sums of powers of deviations from the mean. Student's interval of a sample of non-negative values
    with a long tail ends too low: the largest values are missing from most samples. Its ends are shifted by the first
    term of their Edgeworth expansion (Hall 1992), and the larger distance from the mean counts for both. Infinite for
    a single value.
    """
    if count < 2:
        return math.inf
    if squares <= 0.0:
        return 0.0
    quantile = student_quantile(confidence, count - 1)
    skewness: float = cubes / count / math.pow(squares / count, 1.5)
    if count > 2:
        skewness *= math.sqrt(count * (count - 1)) / (count - 2)  # a small sample's own is too small
    shift = abs(skewness) * (2.0 * quantile * quantile + 1.0) / (6.0 * math.sqrt(count))
    return (quantile + shift) * math.sqrt(squares / (count - 1) / count)


def student_quantile(confidence: float, degrees_of_freedom: int) -> float:
    """Return the t for which |T| <= t has probability `confidence`; that of a normal above `NEARLY_NORMAL`."""
    if degrees_of_freedom > NEARLY_NORMAL:
        from statistics import NormalDist  # noqa: PLC0415  (takes 2 ms, which preparing a study does without)

        return NormalDist().inv_cdf(0.5 + confidence / 2.0)
    low, high = 0.0, math.pi / 2.0  # angles: t = sqrt(degrees_of_freedom) * tan(angle)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _within(middle, degrees_of_freedom) < confidence else (low, middle)
    return math.sqrt(degrees_of_freedom) * math.tan(low)


def _within(angle: float, degrees_of_freedom: int) -> float:
    """Return P(|T| <= sqrt(degrees_of_freedom) tan(angle)): a finite sum of powers of the cosine.

    The powers are odd or even, as the number of degrees of freedom is.
    """
    square = math.cos(angle) ** 2
    is_odd = degrees_of_freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for power in range(1 if is_odd else 0, degrees_of_freedom - 1, 2):
        total += term
        term *= square * (power + 1) / (power + 2)
    inside = math.sin(angle) * total
    return (angle + inside) * 2.0 / math.pi if is_odd else inside
