"""Means of two studies over their common scenarios, and how sure the difference of the means is."""

import math

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import student_quantile

CONFIDENCE = 0.95


class PairedMeans:
    """Takes an array from each study, scenario by scenario, and keeps no scenario.

    The spread is that of the differences, after Welford. It holds for scenarios that are drawn independently of one
    another, whether or not the two studies see the same inflows; where they do, it is much smaller.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.a: Floats = np.zeros(shape)
        self.b: Floats = np.zeros(shape)
        self.difference: Floats = np.zeros(shape)
        self._squares: Floats = np.zeros(shape)

    def add(self, a: Floats, b: Floats) -> None:
        """One scenario. NaN, in either of the two, stays NaN."""
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
    """Whether the interval leaves out 0."""
    return math.isfinite(half_width) and abs(difference) > half_width
