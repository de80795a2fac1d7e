"""Our own fixed scaling: rows and columns by powers of two, so that no digit changes.

The LP library's scaling is switched off, because scale factors that survive from an earlier LP would make a result
depend on what was solved before.
"""

import numpy as np

from cobre import _native
from cobre.core.arrays import Floats, Ints

ROUNDS = 4


def power_of_two_scales(start: Ints, index: Ints, value: Floats, num_columns: int) -> tuple[Floats, Floats]:
    """Scales of rows and columns that bring the entries near one, turn by turn.

    Each goes half way between the largest and the smallest exponent of its entries. Only exponents are used, so that
    the result does not depend on the rounding of a logarithm.
    """
    row, column = np.empty(len(start) - 1), np.empty(num_columns)
    _native.power_of_two_scales(start, index, value, ROUNDS, row, column)
    return row, column
