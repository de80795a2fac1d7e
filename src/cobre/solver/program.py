"""The linear program of a stage: all numbers that its solves have in common.

States, inflows, loads and availabilities change from solve to solve; they only affect right-hand sides and bounds, as
listed in `StageProgram`. Incoming states and inflows are not variables: the gradient of the cost follows from the duals
of the rows that they move.

A state vector has three parts: what the stage before decided, each entry a column of its LP (storages above all); the
inflows of earlier stages, lag by lag; and *passed* states, which were decided earlier and are carried through
unchanged. Decided states have cut coefficients on their columns; the others are given when a stage is solved and move
right-hand sides.
"""

from collections.abc import Mapping
from dataclasses import field, fields

import numpy as np
from numpy.typing import NDArray

from cobre import _native
from cobre.core.arrays import Floats, Ints
from cobre.core.config import SKIPPED_WHEN_NONE
from cobre.records import dataclass

# Up to this number of rows a dense inverse is faster than a sparse factorisation.
MAX_DENSE_ROWS = _native.MAX_DENSE_ROWS
PYTHON_ONLY = ("column_scale", "row_scale", "names", "corrections")


@dataclass(frozen=True, slots=True)
class Names:
    """Names of columns and rows, such as `turbined[3,0]`: a kind, then entity and block."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corrections:
    """Columns that compensate negative inflows, each limited by how far its inflow is below zero.

    column: by hydro; -1: none. factor: from m3/s to the scaled column. is_fixed: they always compensate all of it.
    """

    column: Ints
    factor: Floats
    is_fixed: bool


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
    state_column: Ints  # of every decided state at the end of the stage
    autoregression: Floats  # lags x hydros
    lag_from: Ints  # of every lag: the incoming one that it takes over (-1: none); empty: lags move on by one lag
    lag_share: Floats  # of every lag: its share of this stage's inflow; empty like `lag_from`
    passed_from: Ints  # of every state passed on: the entry of the incoming state that it takes over; -1: 0
    truncates: bool

    input_row: Ints
    input_index: Ints  # incoming decided states, then inflows, then incoming states that are passed on
    input_value: Floats
    load_row: Ints
    load_bus: Ints
    load_factor: Floats
    source_column: Ints
    source_index: Ints
    source_factor: Floats
    source_is_pinned: NDArray[np.uint8]

    names: Names
    corrections: Corrections | None = field(default=None, metadata={SKIPPED_WHEN_NONE: True})

    @property
    def num_decided(self) -> int:
        """Number of states that the stage decides, each with a column."""
        return len(self.state_column)

    @property
    def num_hydros(self) -> int:
        """The number of hydro plants, each with an inflow."""
        return int(self.autoregression.shape[1])

    @property
    def num_lags(self) -> int:
        """Number of inflow lags in the state."""
        return int(self.autoregression.shape[0])

    @property
    def dimension(self) -> int:
        """Entries of the state: all decided states, then lag 1 of all hydros, lag 2, ..., then states passed on."""
        return self.num_decided + self.num_lags * self.num_hydros + len(self.passed_from)

    def lags_of(self, state: Floats) -> Floats:
        """Return the lagged inflows of one state, lags x hydros, m3/s."""
        return state[self.num_decided : self.num_decided + self.num_lags * self.num_hydros].reshape(
            self.num_lags, self.num_hydros
        )

    def realised_inflow(self, state: Floats, noise_m3s: Floats) -> Floats:
        """Return the inflows of one solve (by hydro, m3/s) with the bits of the native code.

        state: entering the stage. noise_m3s: a row of `Realisations.inflow_m3s`. Negative inflows become 0 where the
        program truncates.
        """
        inflow = noise_m3s.copy()
        for psi, lag in zip(self.autoregression, self.lags_of(state), strict=True):
            inflow += psi * lag
        return np.where(inflow < 0.0, 0.0, inflow) if self.truncates else inflow

    def next_states(self, state: Floats, decided: Floats, inflow: Floats) -> Floats:
        """Return the outgoing states of rows of incoming ones: as a rule the inflow becomes lag 1, lag 1 lag 2 ..."""
        first, lags = self.num_decided, self.num_lags * self.num_hydros
        parts = [decided]
        if len(self.lag_from):
            parts.append(self._next_lags(state[:, first : first + lags], inflow))
        elif self.num_lags:
            parts += [inflow, state[:, first : first + lags - self.num_hydros]]
        if len(self.passed_from):
            parts.append(np.where(self.passed_from < 0, 0.0, state[:, self.passed_from]))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def _next_lags(self, lags: Floats, inflow: Floats) -> Floats:
        """Return lags that are means of unfinished seasons: each extends another slot by its share of the inflow."""
        before = (
            lags.reshape(len(lags), self.num_lags, self.num_hydros)[:, self.lag_from] * (self.lag_from >= 0)[:, None]
        )
        following: Floats = before + self.lag_share[:, None] * inflow[:, None, :]
        return following.reshape(len(lags), -1)

    def parts(self) -> Mapping[str, object]:
        """Return the program as the parts, by name, that `LpEngine.load` takes."""
        native_fields = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in PYTHON_ONLY}
        scale = np.ascontiguousarray(self.column_scale[self.state_column])
        sizes = {"num_decided": self.num_decided, "num_hydros": self.num_hydros, "num_lags": self.num_lags}
        return native_fields | sizes | {"state_scale": scale} | self._correction_parts()

    def _correction_parts(self) -> dict[str, object]:
        corrections = self.corrections or Corrections(np.zeros(0, np.int32), np.zeros(0), is_fixed=False)
        return {
            "correction_column": corrections.column,
            "correction_factor": corrections.factor,
            "fixes_corrections": corrections.is_fixed,
        }


# Solver statuses in words; the numbers are those of HiGHS and of the native simplex.

OPTIMAL, INFEASIBLE, UNBOUNDED = "optimal", "infeasible", "unbounded"

REJECTED = 101  # HiGHS does not take the LP

STATUS_WORDS = {
    7: f"{OPTIMAL}, but not solved accurately enough for cuts",
    8: INFEASIBLE,
    9: f"{UNBOUNDED} or {INFEASIBLE}",
    10: UNBOUNDED,
    14: "iteration limit reached",
    100: "not solved by any method (numbers of very different sizes), nor proved to be without a solution",
}
