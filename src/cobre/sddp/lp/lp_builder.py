"""Builder of a linear program, block by block: columns and rows are arrays, entries arrays of equal shape."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from cobre import _native
from cobre._native import BoundList, EntryList
from cobre.core.arrays import Flags, Floats, Indices, Ints
from cobre.core.stage_data import StateLayout, StateSlot
from cobre.records import dataclass

ABSENT = -1


class LpBuilder:
    """Collects columns, rows, entries and the ways in which inputs move right-hand sides, all in plain units."""

    def __init__(self) -> None:
        self.column_names: list[str] = []
        self.row_names: list[str] = []
        self._columns = BoundList()
        self._rows = BoundList()
        self._entries = EntryList()
        self._inputs = EntryList()

    @property
    def num_columns(self) -> int:
        """Number of columns so far."""
        return len(self._columns)

    @property
    def num_rows(self) -> int:
        """Number of rows so far."""
        return len(self._rows)

    def add_columns(
        self,
        name: str,
        shape: Sequence[int],
        lower: ArrayLike,
        upper: ArrayLike,
        cost: ArrayLike,
        exists: ArrayLike = True,
    ) -> Indices:
        """Add columns for the elements that exist; the others get the index ABSENT and their entries are dropped."""
        present = _spread(exists, tuple(shape))
        return self.add_labelled_columns(_labels(name, present), present, lower, upper, cost)

    def add_labelled_columns(
        self, labels: Sequence[str], present: Flags, lower: ArrayLike, upper: ArrayLike, cost: ArrayLike
    ) -> Indices:
        """Add columns as `add_columns` does, with names of their own: one for each that is present."""
        self.column_names += labels
        return _add(self._columns, present, lower, upper, cost)

    def add_rows(
        self, name: str, shape: Sequence[int], lower: ArrayLike, upper: ArrayLike, exists: ArrayLike = True
    ) -> Indices:
        """Add rows where `exists`; return row indices of the given shape, ABSENT where there is none."""
        present = _spread(exists, tuple(shape))
        return self.add_labelled_rows(_labels(name, present), present, lower, upper)

    def add_labelled_rows(self, labels: Sequence[str], present: Flags, lower: ArrayLike, upper: ArrayLike) -> Indices:
        """Add rows as `add_rows` does, with names of their own: one for each that is present."""
        self.row_names += labels
        return _add(self._rows, present, lower, upper)

    def add_entries(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Add coefficients; arrays are broadcast against one another, and zeros and ABSENT indices left out."""
        self._entries.add(np.asarray(rows, np.int64), np.asarray(columns, np.int64), np.asarray(values, np.float64))

    def add_input_terms(self, rows: ArrayLike, inputs: ArrayLike, values: ArrayLike) -> None:
        """Add value * input to the right-hand side of a row."""
        self._inputs.add(np.asarray(rows, np.int64), np.asarray(inputs, np.int64), np.asarray(values, np.float64))

    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Return lower bounds, upper bounds and costs."""
        return _part(self._columns, 0), _part(self._columns, 1), _part(self._columns, 2)

    def rows(self) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of all rows."""
        return _part(self._rows, 0), _part(self._rows, 1)

    def matrix(self) -> tuple[Ints, Ints, Floats]:
        """Return row starts, column indices and values; entries of one row and column are added in order."""
        return _by_rows(self._entries, self.num_rows, self.num_columns)

    def inputs(self, num_inputs: int) -> tuple[Ints, Ints, Floats]:
        """Return rows, inputs and values, sorted by row."""
        start, index, value = _by_rows(self._inputs, self.num_rows, num_inputs)
        return np.repeat(np.arange(self.num_rows, dtype=np.int32), np.diff(start)), index, value


def _add(bounds: BoundList, present: Flags, *parts: ArrayLike) -> Indices:
    """Add the numbers of those that are present, and return their positions; ABSENT for the others."""
    index = np.empty(present.shape, np.int64)
    bounds.add(present, [np.asarray(part, np.float64) for part in parts], index)
    return index


def _part(bounds: BoundList, part: int) -> Floats:
    numbers = np.empty(len(bounds))
    bounds.copy(part, numbers)
    return numbers


def _spread(flags: ArrayLike, shape: tuple[int, ...]) -> Flags:
    """Broadcast by assignment: for blocks of a plant, a tenth of the time of `numpy.broadcast_to`."""
    if isinstance(flags, np.ndarray) and flags.shape == shape and flags.dtype == bool:
        return flags
    is_present = np.empty(shape, bool)
    is_present[...] = flags
    return is_present


def _labels(name: str, present: Flags) -> tuple[str, ...]:
    return _labels_of(name, present.shape, present.tobytes())


@lru_cache(maxsize=512)
def _labels_of(name: str, shape: tuple[int, ...], flags: bytes) -> tuple[str, ...]:
    """Return labels of present elements; stages with the same columns share the strings."""
    present = np.frombuffer(flags, bool).reshape(shape)
    if present.ndim == 0:
        return (name,) if present else ()
    pattern = f"{name}[{','.join(['%d'] * present.ndim)}]"
    return tuple([pattern % index for index in zip(*(axis.tolist() for axis in np.nonzero(present)), strict=True)])


def _by_rows(entries: EntryList, num_rows: int, num_columns: int) -> tuple[Ints, Ints, Floats]:
    start, index, value = np.empty(num_rows + 1, np.int32), np.empty(len(entries), np.int32), np.empty(len(entries))
    count = entries.assemble(num_columns, start, index, value)
    return (start, index, value) if count == len(index) else (start, index[:count].copy(), value[:count].copy())


# Our own fixed scaling: rows and columns by powers of two, so that no digit changes.
#
# The LP library's scaling is switched off, because scale factors that survive from an earlier LP would make a result
# depend on what was solved before.

ROUNDS = 4


def power_of_two_scales(start: Ints, index: Ints, value: Floats, num_columns: int) -> tuple[Floats, Floats]:
    """Return scales of rows and columns that bring the entries near one, turn by turn.

    Each goes half way between the largest and the smallest exponent of its entries. Only exponents are used, so that
    the result does not depend on the rounding of a logarithm.
    """
    row, column = np.empty(len(start) - 1), np.empty(num_columns)
    _native.power_of_two_scales(start, index, value, ROUNDS, row, column)
    return row, column


# Positions of states beyond storages, among the inputs of a stage LP and in the state vector.
#
# Inputs are the incoming decided states (storages first), the inflows, and the incoming states that are passed on.
# The vector holds the decided states, the lagged inflows lag by lag, and the states that are only passed on.


@dataclass(frozen=True, slots=True)
class StateIndex:
    """Indices for `num_hydros` plants with `num_lags` lags each."""

    layout: StateLayout
    num_hydros: int
    num_lags: int

    @property
    def num_decided(self) -> int:
        """Number of states with a column: storages and deliveries that are decided ahead."""
        return self.num_hydros + len(self.layout.decided)

    @property
    def num_inputs(self) -> int:
        """Number of inputs that move right-hand sides of a stage's LP."""
        return self.num_decided + self.num_hydros + len(self.layout.passed)

    def input_of(self, slot: StateSlot) -> int:
        """Return the input of a slot; ABSENT if the state has no such slot."""
        if slot in self.layout.decided:
            return self.num_hydros + self.layout.decided.index(slot)
        if slot in self.layout.passed:
            return self.num_decided + self.num_hydros + self.layout.passed.index(slot)
        return ABSENT

    def previous_inputs(self, slots: Sequence[StateSlot]) -> Indices:
        """Return for each slot the input that held it when the stage began: the slot one stage farther."""
        return np.array([self.input_of(replace(slot, distance=slot.distance + 1)) for slot in slots], np.int64)

    def passed_from(self) -> Ints:
        """Return for each state passed on, the entry of the incoming vector that it takes over; ABSENT: none, and 0."""
        return np.array(
            [self._component(index) for index in self.previous_inputs(self.layout.passed).tolist()], np.int32
        )

    def component_of(self, slot: StateSlot) -> int:
        """Return the entry of the state vector for a slot; ABSENT if it has none."""
        return self._component(self.input_of(slot))

    def _component(self, index: int) -> int:
        """Return the entry of the vector for an input; lagged inflows stand instead of the inflows."""
        return index if index < self.num_decided else index + (self.num_lags - 1) * self.num_hydros
