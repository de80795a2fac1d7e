"""Means of two studies over common scenarios, and the confidence interval of their difference."""

import math

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import student_quantile

CONFIDENCE = 0.95


class PairedMeans:
    """Running means of arrays of both studies and of their difference; no scenario is kept.

    The variance is that of the paired differences (Welford's algorithm). It is valid for scenarios that are drawn
    independently of each other, whether or not both studies see the same inflows; with the same inflows it is much
    smaller.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.a: Floats = np.zeros(shape)
        self.b: Floats = np.zeros(shape)
        self.difference: Floats = np.zeros(shape)
        self._squares: Floats = np.zeros(shape)

    def add(self, a: Floats, b: Floats) -> None:
        """Add one scenario. Where either value is NaN, the means stay NaN."""
        self.count += 1
        self.a += (a - self.a) / self.count
        self.b += (b - self.b) / self.count
        found = b - a
        before = found - self.difference
        self.difference += before / self.count
        self._squares += before * (found - self.difference)

    @property
    def half_width(self) -> Floats:
        """Half width of the 95 % confidence interval of the difference, by Student's t; NaN for a single scenario."""
        if self.count < 2:
            return np.full(self.difference.shape, np.nan)
        error = np.sqrt(np.maximum(self._squares, 0.0) / (self.count - 1) / self.count)
        found: Floats = student_quantile(CONFIDENCE, self.count - 1) * error
        return found


def is_certain(difference: float, half_width: float) -> bool:
    """Whether the confidence interval of the difference excludes 0."""
    return math.isfinite(half_width) and abs(difference) > half_width
