"""Our own fixed scaling: rows and columns by powers of two, so that no digit changes.

The LP library's scaling is switched off, because scale factors that survive from an earlier LP would make a result
depend on what was solved before.
"""

import numpy as np

from cobre.core.arrays import Floats, Indices, Ints

ROUNDS = 4


Exponents = Indices


def power_of_two_scales(start: Ints, index: Ints, value: Floats, num_columns: int) -> tuple[Floats, Floats]:
    """Scales of rows and columns that bring the entries near one: geometric means, turn by turn.

    Only exponents are used, so that the result does not depend on the rounding of a logarithm.
    """
    rows = np.repeat(np.arange(len(start) - 1), np.diff(start))
    columns = index.astype(np.int64)
    exponent = np.frexp(value)[1].astype(np.int64)
    row, column = np.zeros(len(start) - 1, np.int64), np.zeros(num_columns, np.int64)
    for _ in range(ROUNDS):
        row = -_middle(exponent + column[columns], rows, len(row))
        column = -_middle(exponent + row[rows], columns, num_columns)
    return np.ldexp(1.0, row), np.ldexp(1.0, column)


def _middle(exponent: Exponents, group: Exponents, count: int) -> Exponents:
    """Half way between the largest and the smallest of every group; 0 for an empty one."""
    high, low = np.full(count, -(1 << 40)), np.full(count, 1 << 40)
    np.maximum.at(high, group, exponent)
    np.minimum.at(low, group, exponent)
    return np.where(high >= low, (high + low) // 2, 0)
