"""Observations of one hydro and season by kind, which decides how their mean and deviation are taken.

The kinds are tried in this order:

1. constant: all lie within 1e-6 of the first. The mean is the first one, the deviation 0.
2. negative: more than a tenth lie below zero. Taken like ordinary ones, with a note for the user.
3. saturated: rounded to whole numbers, more than half are equal. The mean is that number, the deviation 0.
4. ordinary.

A season with deviation 0 is white noise of order 0: it remembers nothing, and nothing remembers it.
"""

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices
from cobre.records import dataclass

_SAME_M3S = 1e-6
_ROUNDING = 1e-10
_NEGATIVE_SHARE = 0.1
_SATURATED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class ObservationKinds:
    """By season and hydro. `level_m3s` is the mean of constant and saturated seasons, 0 elsewhere."""

    is_constant: Flags
    is_negative: Flags
    is_saturated: Flags
    level_m3s: Floats

    @property
    def is_level(self) -> Flags:
        """Whether the deviation counts as 0."""
        return self.is_constant | self.is_saturated


def ordinary(values: Floats) -> ObservationKinds:
    """Kinds for means over many observations, which may be nearly equal: only what does not vary at all is constant."""
    first = _first_known(values)
    is_constant = ~np.isnan(first) & ~(np.abs(values - first) > _ROUNDING * np.abs(first)).any(axis=0)
    none = np.zeros(is_constant.shape, dtype=np.bool_)
    return ObservationKinds(is_constant, none, none, np.where(is_constant, first, 0.0))


def observation_kinds(values: Floats) -> ObservationKinds:
    """The kinds of a grid (year, season, hydro) of observations; NaN is none. Seasons without any are ordinary."""
    count = (~np.isnan(values)).sum(axis=0)
    first = _first_known(values)
    is_constant = (count > 0) & ~(np.abs(values - first) > _SAME_M3S).any(axis=0)
    is_negative = ~is_constant & ((values < 0.0).sum(axis=0) > _NEGATIVE_SHARE * count)
    mode, frequency = _most_frequent(rounded(values))
    is_saturated = ~is_constant & ~is_negative & (frequency > _SATURATED_SHARE * count)
    level = np.where(is_constant, first, np.where(is_saturated, mode, 0.0))
    return ObservationKinds(is_constant, is_negative, is_saturated, level)


def rounded(values: Floats) -> Floats:
    """The nearest whole numbers; halves go away from zero."""
    whole = np.trunc(values)
    result: Floats = np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)
    return result


def _first_known(values: Floats) -> Floats:
    found = np.full(values.shape[1:], np.nan)
    for value in values:
        found = np.where(np.isnan(found), value, found)
    return found


def _most_frequent(values: Floats) -> tuple[Floats, Indices]:
    """The number that occurs most often over the first axis, and how often; the smallest of several."""
    mode = np.full(values.shape[1:], np.nan)
    most = np.zeros(values.shape[1:], dtype=np.int64)
    run, before = most, mode
    for value in np.sort(values, axis=0):
        run = np.where(value == before, run + 1, np.where(np.isnan(value), 0, 1))
        mode, most, before = np.where(run > most, value, mode), np.maximum(run, most), value
    return mode, most
