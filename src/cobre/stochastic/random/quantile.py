"""The inverse of the standard normal distribution, by Beasley, Springer and Moro: not exact, good to 3e-9.

The Rust program uses this approximation, so the openings of Latin hypercubes, Sobol and Halton points need it too.
Its sixth tail coefficient ends in 349 where Moro's paper has 919; its openings show that, and ours must be the same.
Probabilities next to 0 and 1 are cut off at 8.21 standard deviations, as there.
"""

import math

import numpy as np

from cobre.core.arrays import Floats

_NUMERATOR = (2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637)
_DENOMINATOR = (1.0, -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833)
_TAIL = (
    0.3374754822726147,
    0.9761690190917186,
    0.1607979714918209,
    0.0276438810333863,
    0.0038405729373609,
    0.0003951896511349,
    0.0000321767881768,
    0.0000002888167364,
    0.0000003960315187,
)
_CENTRE = 0.42
_MIN_PROBABILITY = 1e-20
_MAX_QUANTILE = 8.21


def norm_quantile(probabilities: Floats) -> Floats:
    """The numbers below which a standard normal falls with these probabilities, strictly between 0 and 1."""
    centred = probabilities - 0.5
    squared = centred * centred
    result: Floats = centred * _polynomial(_NUMERATOR, squared) / _polynomial(_DENOMINATOR, squared)
    flat, given = result.ravel(), probabilities.ravel()
    for index in np.flatnonzero(np.abs(centred.ravel()) >= _CENTRE):
        flat[index] = _tail(float(given[index]))
    return flat.reshape(probabilities.shape)


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    total: Floats = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _tail(probability: float) -> float:
    """Scalar, with the C library's logarithm: NumPy's differs between processors."""
    nearer_end = min(probability, 1.0 - probability)
    if nearer_end <= _MIN_PROBABILITY:
        return math.copysign(_MAX_QUANTILE, probability - 0.5)
    x = math.log(-math.log(nearer_end))
    total = _TAIL[-1]
    for coefficient in reversed(_TAIL[:-1]):
        total = total * x + coefficient
    return total if probability > 0.5 else -total
