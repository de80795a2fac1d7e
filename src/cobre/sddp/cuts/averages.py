"""Cuts out of the solves of a backward pass. The sums are native, in an order that never changes."""

from typing import cast

from cobre._native import average_cuts as _average_cuts
from cobre.core.arrays import Floats


def average_cuts(costs: Floats, weights: Floats, gradients: Floats, states: Floats) -> Floats:
    """One cut for each trial point: its intercept, then its coefficients.

    costs, weights: points x openings. gradients: (points x openings) x dimension. states: points x dimension.
    """
    return cast("Floats", _average_cuts(costs, weights, gradients, states))
