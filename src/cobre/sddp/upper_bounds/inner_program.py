"""A stage's LP with an inner approximation of the cost-to-go in place of cuts.

The cost-to-go V is convex. Where V(x_k) <= v_k is known at some states x_k, the vertices, and where V rises by at most
`up` and `down` per unit in each component,

    V(x) <= min { sum w_k v_k + up . s+ + down . s-  :  sum w_k x_k + s+ - s- = x, sum w_k = 1, w, s >= 0 }.

The minimum joins the stage's own: w, s+ and s- are columns, the equations are rows. Components of the outgoing state
that the stage does not decide (lags, what is passed on) are known beforehand and move right-hand sides. A stage's
inputs do not contain incoming lags, so the incoming state is followed by its lags once more (`with_lags`), as states
that are passed on.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices, Ints
from cobre.records import dataclass
from cobre.solver.batches import CutRows
from cobre.solver.program import Names, StageProgram

NO_CUTS = CutRows([], 0, np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Slopes:
    """By component of a state: the most that the cost-to-go rises for one unit more, and for one less; inf: unknown."""

    up: Floats
    down: Floats


@dataclass(frozen=True, slots=True)
class InnerFuture:
    """Upper bounds of the cost-to-go after a stage. values: scaled costs. relevant: components that it depends on."""

    vertices: Floats
    values: Floats
    slopes: Slopes
    relevant: Flags


def with_lags(program: StageProgram, states: Floats) -> Floats:
    """Incoming states as an inner program wants them."""
    first, lags = program.num_decided, program.num_lags * program.num_hydros
    return np.ascontiguousarray(np.concatenate([states, states[:, first : first + lags]], axis=1))


def inner_program(program: StageProgram, future: InnerFuture) -> StageProgram:
    """The stage LP with the inner approximation of its future cost; the objective is a scaled cost."""
    return _InnerBuilder(program, future).build()


class _InnerBuilder:
    """Appends columns (weights of vertices, then slacks) and rows (one for each component, then the sum of weights)."""

    def __init__(self, program: StageProgram, future: InnerFuture) -> None:
        self.program, self.future = program, future
        self.components = np.flatnonzero(future.relevant)
        # A power of two for each row brings its largest entry near one, and changes no digit.
        largest = np.abs(future.vertices[:, self.components]).max(axis=0, initial=0.0)
        self.scale = np.ldexp(1.0, -np.frexp(np.where(largest > 0.0, largest, 1.0))[1])
        self.first_weight = len(program.cost)
        self.first_slack = self.first_weight + len(future.vertices)

    def build(self) -> StageProgram:
        program = self.program
        cost, row_of_slack, sign = self._columns()
        start, index, value = self._rows(row_of_slack, sign)
        inputs = sorted(self._inputs())
        count, rows = len(cost), len(self.components) + 1
        sides = np.concatenate([np.zeros(rows - 1), [1.0]])
        least = float(self.future.values.min())
        return replace(
            program,
            cost=np.concatenate([program.cost, cost]),
            column_lower=np.concatenate([_fixed(program.column_lower, program.future_cost, least), np.zeros(count)]),
            column_upper=np.concatenate(
                [_fixed(program.column_upper, program.future_cost, least), np.full(count, np.inf)]
            ),
            row_lower=np.concatenate([program.row_lower, sides]),
            row_upper=np.concatenate([program.row_upper, sides]),
            row_start=np.concatenate([program.row_start, program.row_start[-1] + start]).astype(np.int32),
            column_index=np.concatenate([program.column_index, index]).astype(np.int32),
            value=np.concatenate([program.value, value]),
            column_scale=np.concatenate([program.column_scale, np.ones(count)]),
            row_scale=np.concatenate([program.row_scale, np.ones(rows)]),
            passed_from=np.concatenate([program.passed_from, self._no_lags()]).astype(np.int32),
            input_row=np.concatenate([program.input_row, [row for row, _, _ in inputs]]).astype(np.int32),
            input_index=np.concatenate([program.input_index, [at for _, at, _ in inputs]]).astype(np.int32),
            input_value=np.concatenate([program.input_value, [by for _, _, by in inputs]]),
            names=self._names(count, rows),
        )

    def _columns(self) -> tuple[Floats, Indices, Floats]:
        """Costs of weights and slacks; the row and the sign of every slack. A direction without a limit has none."""
        price, future = float(self.program.cost[self.program.future_cost]), self.future
        weights = price * (future.values - float(future.values.min()))
        up, down = (slopes[self.components] for slopes in (future.slopes.up, future.slopes.down))
        has_up, has_down = np.isfinite(up), np.isfinite(down)
        slacks = price * np.concatenate([(up / self.scale)[has_up], (down / self.scale)[has_down]])
        rows = np.concatenate([np.flatnonzero(has_up), np.flatnonzero(has_down)])
        sign = np.concatenate([np.ones(int(has_up.sum())), -np.ones(int(has_down.sum()))])
        return np.concatenate([weights, slacks]), rows, sign

    def _rows(self, row_of_slack: Indices, sign: Floats) -> tuple[Indices, Indices, Floats]:
        """Ends of rows, column indices, values."""
        program, vertices = self.program, self.future.vertices
        weights = self.first_weight + np.arange(len(vertices), dtype=np.int64)
        parts: list[tuple[list[Indices], list[Floats]]] = []
        for row, component in enumerate(self.components.tolist()):
            own = np.flatnonzero(row_of_slack == row)
            columns, values = [weights, self.first_slack + own], [vertices[:, component] * self.scale[row], sign[own]]
            if component < program.num_decided:
                column = int(program.state_column[component])
                columns.insert(0, np.array([column]))
                values.insert(0, np.array([-self.scale[row] * program.column_scale[column]]))
            parts.append((columns, values))
        parts.append(([weights], [np.ones(len(vertices))]))
        lengths = [sum(len(part) for part in columns) for columns, _ in parts]
        index = np.concatenate([part for columns, _ in parts for part in columns])
        value = np.concatenate([part for _, values in parts for part in values])
        return np.cumsum(lengths), index, value

    def _inputs(self) -> Iterator[tuple[int, int, float]]:
        """How what is known beforehand moves the rows: row, input, by how much."""
        program = self.program
        lags, first = program.num_lags * program.num_hydros, program.num_decided
        for row, component in enumerate(self.components.tolist()):
            target = len(program.row_lower) + row
            if first <= component < first + lags:
                terms = self._lag_terms(component - first)
            elif component >= first + lags:
                taken = int(program.passed_from[component - first - lags])
                terms = {} if taken < 0 else {self._input_of(taken): 1.0}
            else:
                terms = {}
            for at, by in terms.items():
                yield target, at, by * float(self.scale[row])

    def _lag_terms(self, lag: int) -> dict[int, float]:
        """Inputs that an outgoing lag is made of: this stage's inflow, an incoming lag."""
        program = self.program
        number, hydro = divmod(lag, program.num_hydros)
        if len(program.lag_from):
            taken, share = int(program.lag_from[number]), float(program.lag_share[number])
            terms = {} if taken < 0 else {self._lag_input(taken * program.num_hydros + hydro): 1.0}
            return terms | ({program.num_decided + hydro: share} if share else {})
        if number == 0:
            return {program.num_decided + hydro: 1.0}
        return {self._lag_input(lag - program.num_hydros): 1.0}

    def _lag_input(self, lag: int) -> int:
        return self.program.num_decided + self.program.num_hydros + len(self.program.passed_from) + lag

    def _input_of(self, component: int) -> int:
        """The input that an entry of the incoming state is."""
        program = self.program
        lags = program.num_lags * program.num_hydros
        if component < program.num_decided:
            return component
        if component < program.num_decided + lags:
            return self._lag_input(component - program.num_decided)
        return component - lags + program.num_hydros

    def _no_lags(self) -> Ints:
        """The lags that leave the stage: none, since nothing after it reads them here."""
        return np.full(self.program.num_lags * self.program.num_hydros, -1, np.int32)

    def _names(self, columns: int, rows: int) -> Names:
        names = self.program.names
        return Names(
            (*names.columns, *(f"inner[{at}]" for at in range(columns))),
            (*names.rows, *(f"outgoing_state[{at}]" for at in range(rows - 1)), "inner_weights"),
        )


def _fixed(bounds: Floats, column: int, value: float) -> Floats:
    """Bounds that fix a column, here the future cost at the least of the vertices' values."""
    changed = bounds.copy()
    changed[column] = value
    return changed
