"""Halton points with scrambled digits, as standard normals.

Every digit of every dimension is permuted at random, the endless zeros behind the last digit too (as far as a float can
tell). The Rust program leaves those zeros alone: its first opening is then the corner of the cube, 8.21 deviations
below the mean in all dimensions, and others coincide with it. So these points are not those of the Rust program, on
purpose.
"""

import math

import numpy as np

from cobre.core.arrays import Floats, Indices
from cobre.stochastic.random.pcg64 import Pcg64Sequence
from cobre.stochastic.random.quantile import norm_quantile
from cobre.stochastic.random.seeds import stage_seeds

_MANTISSA_BITS = 53


def halton(seed: int, stage_id: int, count: int, dimension: int) -> Floats:
    """Standard normals (opening, entity) of a stage."""
    return halton_points(int(stage_seeds(seed, stage_id)[0]), np.arange(count), dimension)


def halton_points(seed: int, numbers: Indices, dimension: int) -> Floats:
    """The points with these numbers, scrambled by `seed`."""
    stream = Pcg64Sequence(seed)
    values = np.empty((len(numbers), dimension))
    for column, base in enumerate(first_primes(dimension)):
        values[:, column] = norm_quantile(_scrambled_inverse(stream, numbers, base))
    return values


def _scrambled_inverse(stream: Pcg64Sequence, numbers: Indices, base: int) -> Floats:
    """The digits of each number in reverse, behind the point, each sent through a permutation of its own."""
    total, weight, rest = np.zeros(len(numbers)), 1.0, numbers
    for _ in range(math.ceil(_MANTISSA_BITS / math.log2(base))):
        weight = weight / base
        permutation = np.argsort(stream.next_u64(base), kind="stable")
        total = total + permutation[rest % base] * weight
        rest = rest // base
    # Half of the last digit keeps the points inside (0, 1).
    return np.clip(total + 0.5 * weight, 2.0**-_MANTISSA_BITS, 1.0 - 2.0**-_MANTISSA_BITS)


def first_primes(count: int) -> list[int]:
    """The first `count` primes, the bases of the Halton sequence."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes if prime * prime <= candidate):
            primes.append(candidate)
        candidate += 1
    return primes
