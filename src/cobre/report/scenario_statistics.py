"""Percentiles over scenarios of many cells at once."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats

PERCENTILES = (5, 25, 50, 75, 95)
# Cells that are sorted together: few enough for the CPU cache.
CELLS_AT_ONCE = 1 << 12


def percentiles(values: Floats, wanted: Sequence[float] = PERCENTILES) -> Floats:
    """Percentiles over the first axis, the scenarios, as by `numpy.percentile`; NaN where any value is NaN."""
    scenarios, shape = values.shape[0], values.shape[1:]
    flat = values.reshape(scenarios, -1)
    found = np.empty((len(wanted), flat.shape[1]), np.float64)
    at = np.asarray(wanted, np.float64) / 100.0 * (scenarios - 1)
    below = np.floor(at).astype(np.intp)
    above = np.minimum(below + 1, scenarios - 1)
    share = (at - below)[:, None]
    for first in range(0, flat.shape[1], CELLS_AT_ONCE):
        some = np.sort(flat[:, first : first + CELLS_AT_ONCE], axis=0)
        low, high = some[below], some[above]
        part = low + (high - low) * share
        part[:, np.isnan(some[-1])] = np.nan  # NaN is sorted to the end
        found[:, first : first + CELLS_AT_ONCE] = part
    return found.reshape(len(wanted), *shape)
