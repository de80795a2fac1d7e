"""One stage's linear program as numbers: what every solve of the stage has in common.

States, inflows, loads and availabilities change from solve to solve; they enter through right-hand sides and bounds
alone, in the ways that a `StageProgram` lists. Incoming storages and inflows are no variables: the slope of the cost in
them follows from the duals of the rows that they move.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

PYTHON_ONLY = ("column_scale", "row_scale", "names")


@dataclass(frozen=True, slots=True)
class Names:
    """What columns and rows mean; blocks of consecutive indices by a word and an entity-by-block shape."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageProgram:
    """Minimise cost . x over row_lower <= A x <= row_upper; A is stored by rows.

    All numbers are scaled: column j counts in units of `column_scale[j]`, row i was multiplied by `row_scale[i]`.
    Scales are powers of two.
    """

    cost: Floats
    column_lower: Floats
    column_upper: Floats
    row_lower: Floats
    row_upper: Floats
    row_start: Ints
    column_index: Ints
    value: Floats
    column_scale: Floats
    row_scale: Floats

    future_cost: int
    storage_column: Ints
    autoregression: Floats  # lags x hydros
    truncates: bool

    input_row: Ints
    input_index: Ints  # incoming storages, then inflows
    input_value: Floats
    load_row: Ints
    load_bus: Ints
    load_factor: Floats
    source_column: Ints
    source_index: Ints
    source_factor: Floats
    source_is_pinned: NDArray[np.uint8]

    names: Names

    @property
    def hydros(self) -> int:
        """Reservoirs in the state."""
        return len(self.storage_column)

    @property
    def order(self) -> int:
        """Lags in the state."""
        return int(self.autoregression.shape[0])

    @property
    def dimension(self) -> int:
        """Entries of the state: all storages, then lag 1 of all hydros, lag 2, ..."""
        return self.hydros * (1 + self.order)

    def parts(self) -> Mapping[str, object]:
        """What the native kernel wants to know."""
        kept = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in PYTHON_ONLY}
        scale = np.ascontiguousarray(self.column_scale[self.storage_column])
        return kept | {"hydros": self.hydros, "order": self.order, "storage_scale": scale}
