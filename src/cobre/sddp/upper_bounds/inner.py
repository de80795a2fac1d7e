"""A deterministic upper bound by inner approximation (Philpott, de Matos and Finardi 2013), under any coherent risk.

From the last stage to the first, every vertex is solved for all openings, with the inner approximation of what follows
in place of cuts: the risk of those costs is an upper bound of the cost-to-go at the vertex. At the first stage it is an
upper bound of what training minimises. The cost-to-go must be convex: inflow truncated at zero while it depends on its
own past is not, and is refused.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cobre.core.arrays import Flags, Floats, Indices, Ints
from cobre.records import dataclass
from cobre.sddp.cut_pool import stored_components
from cobre.sddp.iteration_records import Phase
from cobre.sddp.plugins.interfaces import RiskMeasure
from cobre.sddp.plugins.risk import weighted
from cobre.sddp.problem.openings import StageOpenings
from cobre.sddp.problem.problem import Problem
from cobre.sddp.ranks import WorkSplit
from cobre.sddp.training.context import TrainingContext
from cobre.solver.batches import Batch, Chains, CutRows, LpSolver, Outputs, Realisations, SolveFailedError, no_bases
from cobre.solver.program import Corrections, Names, StageProgram

# A stage's LP with an inner approximation of the cost-to-go in place of cuts.
#
# The cost-to-go V is convex. Where V(x_k) <= v_k is known at some states x_k, the vertices, and where V rises by at
# most `up` and `down` per unit in each component,
#
#     V(x) <= min { sum w_k v_k + up . s+ + down . s-  :  sum w_k x_k + s+ - s- = x, sum w_k = 1, w, s >= 0 }.
#
# The minimum joins the stage's own: w, s+ and s- are columns, the equations are rows. Components of the outgoing state
# that the stage does not decide (lags, states passed on) are constants and move right-hand sides. A stage's
# inputs do not contain incoming lags, so the incoming state is followed by its lags once more (`with_lags`), as states
# that are passed on.

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
    """Return incoming states as an inner program wants them."""
    first, lags = program.num_decided, program.num_lags * program.num_hydros
    return np.ascontiguousarray(np.concatenate([states, states[:, first : first + lags]], axis=1))


def inner_program(program: StageProgram, future: InnerFuture) -> StageProgram:
    """Build the stage LP with the inner approximation of its future cost; the objective is a scaled cost."""
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
        lower = float(self.future.values.min())
        return replace(
            program,
            cost=np.concatenate([program.cost, cost]),
            column_lower=np.concatenate([_fixed(program.column_lower, program.future_cost, lower), np.zeros(count)]),
            column_upper=np.concatenate(
                [_fixed(program.column_upper, program.future_cost, lower), np.full(count, np.inf)]
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
        """Return costs of weights and slacks, row and sign of every slack; an unlimited direction has none."""
        price, future = float(self.program.cost[self.program.future_cost]), self.future
        weights = price * (future.values - float(future.values.min()))
        up, down = (slopes[self.components] for slopes in (future.slopes.up, future.slopes.down))
        has_up, has_down = np.isfinite(up), np.isfinite(down)
        slacks = price * np.concatenate([(up / self.scale)[has_up], (down / self.scale)[has_down]])
        rows = np.concatenate([np.flatnonzero(has_up), np.flatnonzero(has_down)])
        sign = np.concatenate([np.ones(int(has_up.sum())), -np.ones(int(has_down.sum()))])
        return np.concatenate([weights, slacks]), rows, sign

    def _rows(self, row_of_slack: Indices, sign: Floats) -> tuple[Indices, Indices, Floats]:
        """Return ends of rows, column indices, values."""
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
        """Return the effect of known inputs on rows: row, input, factor."""
        program = self.program
        lags, first = program.num_lags * program.num_hydros, program.num_decided
        for row, component in enumerate(self.components.tolist()):
            target = len(program.row_lower) + row
            if first <= component < first + lags:
                terms = self._lag_terms(component - first)
            elif component >= first + lags:
                source = int(program.passed_from[component - first - lags])
                terms = {} if source < 0 else {self._input_of(source): 1.0}
            else:
                terms = {}
            for at, by in terms.items():
                yield target, at, by * float(self.scale[row])

    def _lag_terms(self, lag: int) -> dict[int, float]:
        """Yield the inputs that an outgoing lag is made of: this stage's inflow, an incoming lag."""
        program = self.program
        number, hydro = divmod(lag, program.num_hydros)
        if len(program.lag_from):
            source, share = int(program.lag_from[number]), float(program.lag_share[number])
            terms = {} if source < 0 else {self._lag_input(source * program.num_hydros + hydro): 1.0}
            return terms | ({program.num_decided + hydro: share} if share else {})
        if number == 0:
            return {program.num_decided + hydro: 1.0}
        return {self._lag_input(lag - program.num_hydros): 1.0}

    def _lag_input(self, lag: int) -> int:
        return self.program.num_decided + self.program.num_hydros + len(self.program.passed_from) + lag

    def _input_of(self, component: int) -> int:
        """Return the input that an entry of the incoming state is."""
        program = self.program
        lags = program.num_lags * program.num_hydros
        if component < program.num_decided:
            return component
        if component < program.num_decided + lags:
            return self._lag_input(component - program.num_decided)
        return component - lags + program.num_hydros

    def _no_lags(self) -> Ints:
        """Return the lags that leave the stage: none, since nothing after it reads them here."""
        return np.full(self.program.num_lags * self.program.num_hydros, -1, np.int32)

    def _names(self, columns: int, rows: int) -> Names:
        names = self.program.names
        return Names(
            (*names.columns, *(f"inner[{at}]" for at in range(columns))),
            (*names.rows, *(f"outgoing_state[{at}]" for at in range(rows - 1)), "inner_weights"),
        )


def _fixed(bounds: Floats, column: int, value: float) -> Floats:
    """Return bounds that fix a column, here the future cost at the least of the vertices' values."""
    changed = bounds.copy()
    changed[column] = value
    return changed


# The states at which an inner approximation has its vertices: visited ones, and corners of a box around all others.

MAX_CORNERS = 256


@dataclass(frozen=True, slots=True)
class Box:
    """The minimum and maximum of every component of a state."""

    low: Floats
    high: Floats

    def around(self, states: Floats) -> "Box":
        """Return the box that holds some states too."""
        return Box(np.minimum(self.low, states.min(axis=0)), np.maximum(self.high, states.max(axis=0)))


def boxes(problem: Problem, visited: Floats) -> list[Box]:
    """Return the box of states that may enter each stage, from the openings and the limits of columns.

    visited: states that entered the stages (stage, path, component).
    """
    boxes = [Box(problem.initial_state, problem.initial_state)]
    for stage in range(problem.num_stages - 1):
        after = _after(problem.stages[stage].program, boxes[-1], problem.openings[stage].realisations.inflow_m3s)
        boxes.append(_finite(after, visited[stage + 1]).around(visited[stage + 1]))
    return boxes


def corners(box: Box, relevant: Flags) -> Floats:
    """Return all corners in the relevant components; where these are too many, the one with the least of everything."""
    varies = np.flatnonzero(relevant & (box.high > box.low))
    if 2 ** len(varies) > MAX_CORNERS:
        return box.low[None].copy()
    table = np.tile(box.low, (2 ** len(varies), 1))
    for row, choice in enumerate(itertools.product((False, True), repeat=len(varies))):
        table[row, varies] = np.where(choice, box.high[varies], box.low[varies])
    return table


def _after(program: StageProgram, before: Box, noise: Floats) -> Box:
    """Return the box of states that can leave a stage, from the box of those that enter it."""
    inflow = _inflows(program, before, noise)
    low = _leaving(program, before.low, inflow.low, program.column_lower)
    high = _leaving(program, before.high, inflow.high, program.column_upper)
    return Box(np.minimum(low, high), np.maximum(low, high))


def _leaving(program: StageProgram, before: Floats, inflow: Floats, bound: Floats) -> Floats:
    """Return one end of the box, from the same end of everything before."""
    decided = (bound * program.column_scale)[program.state_column]
    following: Floats = program.next_states(before[None], decided[None], inflow[None])[0]
    return following


def _inflows(program: StageProgram, before: Box, noise: Floats) -> Box:
    """Return minimum and maximum inflow of every plant: autoregression over the box of its lags, and any opening."""
    by_low = program.autoregression * program.lags_of(before.low)
    by_high = program.autoregression * program.lags_of(before.high)
    lower = noise.min(axis=0) + np.minimum(by_low, by_high).sum(axis=0)
    upper = noise.max(axis=0) + np.maximum(by_low, by_high).sum(axis=0)
    return Box(np.maximum(lower, 0.0), np.maximum(upper, 0.0)) if program.truncates else Box(lower, upper)


def _finite(box: Box, visited: Floats) -> Box:
    """Replace infinite ends of the box by those of the visited states."""
    low, high = visited.min(axis=0), visited.max(axis=0)
    return Box(np.where(np.isfinite(box.low), box.low, low), np.where(np.isfinite(box.high), box.high, high))


def state_variables(problem: Problem) -> int:
    """Count the components of the state that some cost-to-go depends on."""
    programs = [stage.program for stage in problem.stages]
    is_read = (
        np.any(stored_components(programs, is_priced=False)[:-1], axis=0) if len(programs) > 1 else np.zeros(0, bool)
    )
    return int(is_read.sum())


# How steep the cost-to-go can be: proven from what every stage can always do, whatever it decided.
#
# A state that changes by one unit moves right-hand sides. Columns without an upper limit (spillage, slacks with a
# penalty) can always take that up, from any solution; the cheapest way to do so is an LP over the directions in which
# columns and rows have no limit (the recession cone). Its optimum limits the rise of the stage's cost for every
# opening, and so that of any coherent risk measure of it. Outgoing states that must change count with the next
# stage's limits.


def slopes_of_boundary(dimension: int, boundary: CutRows | None) -> Slopes:
    """Return the slopes after the last stage: those of a boundary policy's cuts, or none."""
    if boundary is None or not boundary.count:
        return Slopes(np.zeros(dimension), np.zeros(dimension))
    table = np.concatenate(boundary.chunks, axis=1)[:, : boundary.count]
    up, down = np.zeros(dimension), np.zeros(dimension)
    for component in range(dimension):
        row = 1 + component if boundary.rows is None else int(boundary.rows[component])
        if row >= 0:
            up[component] = max(0.0, float(table[row].max()))
            down[component] = max(0.0, float(-table[row].min()))
    return Slopes(up, down)


def slopes_before(problem: Problem, solver: LpSolver, number: int, stage: int, later: Slopes) -> Slopes:
    """Return bounds on the slopes of the cost-to-go before a stage, from those after it.

    number: the number under which the solver holds the auxiliary LP.
    """
    program, dimension = problem.stages[stage].program, problem.dimension
    origin = InnerFuture(np.zeros((1, dimension)), np.zeros(1), later, np.ones(dimension, bool))
    directions = inner_program(_directions(program), origin)
    solver.load(number, directions)
    zero_noise = _zero_realisation(problem.openings[stage].realisations)
    changes = with_lags(program, np.concatenate([np.eye(dimension), -np.eye(dimension)]))
    slopes = np.array([_least_cost(solver, number, directions, change[None], zero_noise) for change in changes])
    return Slopes(slopes[:dimension], slopes[dimension:])


def _zero_realisation(usual: Realisations) -> Realisations:
    """Return a single realisation with zero inflow, load and availability."""
    parts = (usual.inflow_m3s, usual.load_mw, usual.availability)
    return Realisations(*(np.zeros((1, part.shape[1])) for part in parts))


def _directions(program: StageProgram) -> StageProgram:
    """Build the program of changes: what has a limit cannot go towards it."""
    lower, upper = (_unlimited(side) for side in (program.column_lower, program.column_upper))
    return replace(
        program,
        column_lower=lower,
        column_upper=upper,
        row_lower=_unlimited(program.row_lower),
        row_upper=_unlimited(program.row_upper),
        load_factor=np.zeros_like(program.load_factor),
        source_factor=np.zeros_like(program.source_factor),
        truncates=False,
        corrections=_without_corrections(program.corrections),
    )


def _without_corrections(corrections: Corrections | None) -> Corrections | None:
    """Fix corrections at zero: they only follow from negative inflows, not from changes of the state."""
    return None if corrections is None else replace(corrections, factor=np.zeros_like(corrections.factor))


def _unlimited(side: Floats) -> Floats:
    return np.where(np.isfinite(side), 0.0, side)


def _least_cost(
    solver: LpSolver, number: int, program: StageProgram, change: Floats, zero_noise: Realisations
) -> float:
    """Return the least cost of a change of the state, scaled and at least zero.

    Inf where nothing can absorb it for certain.
    """
    chains = Chains.single(change, zero_noise, np.zeros(1, np.int32), no_bases(program))
    try:
        batch = solver.solve(number, NO_CUTS, chains, Outputs())
    except SolveFailedError:
        return np.inf
    return max(0.0, float(batch.objective[0]))


# A stage solved for every opening from some states, and the risk of what that costs.


@dataclass(frozen=True, slots=True)
class OpeningResults:
    """Results by state and opening; all costs are scaled. costs: with the future; stage_costs: without it."""

    costs: Floats
    stage_costs: Floats
    future: Floats
    leaving: Floats  # states x openings x dimension


def risk_into(problem: Problem, stage: int) -> RiskMeasure:
    """Return the risk measure over the openings of a stage: that of the stage before it, or its own for the first."""
    return problem.risk[max(0, stage - 1)]


def solve_all_openings(context: TrainingContext, stage: int, states: Floats) -> OpeningResults:
    """Solve every state (rows) with every opening of a stage, under the policy with all its cuts."""
    problem = context.problem
    opening, program = problem.openings[stage], problem.stages[stage].program
    chains = chains_over_openings(opening, states, program)
    batch = context.solve(Phase.SIMULATION, 0, stage, chains, Outputs(), all_cuts=True)
    leaving = program.next_states(np.repeat(states, opening.count, axis=0), batch.decided, batch.inflow)
    return _results(problem, stage, batch, leaving, (len(states), opening.count))


def _results(problem: Problem, stage: int, batch: Batch, leaving: Floats, shape: tuple[int, int]) -> OpeningResults:
    """Arrange results by state and opening. The cost of a boundary policy belongs to the last stage."""
    future, costs = batch.future_cost.reshape(shape), batch.objective.reshape(shape)
    stage_costs = costs - problem.future_weight(stage) * future
    return OpeningResults(costs, stage_costs, future, leaving.reshape(*shape, problem.dimension))


def chains_over_openings(opening: StageOpenings, states: Floats, program: StageProgram) -> Chains:
    """Return a chain for each state, from the driest opening to the wettest; results by state, then by opening."""
    count = opening.count
    start = (count * np.arange(len(states) + 1)).astype(np.int32)
    result_index: Ints = (start[:-1, None] + opening.order).reshape(-1).astype(np.int32)
    realisation_index = np.tile(opening.order, len(states)).astype(np.int32)
    index = np.full(len(states), -1, np.int32)
    noise, bases = opening.realisations, no_bases(program)
    return Chains(np.ascontiguousarray(states), start, noise, realisation_index, bases, index, result_index)


def inner_bound(context: TrainingContext, visited: Floats) -> tuple[float, int]:
    """Return the bound in $ and the number of vertices; inf if no vertex of some stage has a feasible LP.

    visited: states that enter the stages (stage, path, component): the more like the policy's, the tighter the bound.
    The same bits for any number of ranks.
    """
    sweep = _Sweep(context, visited)
    for stage in range(context.problem.num_stages - 1, 0, -1):
        sweep.step_to(stage)
    return float(sweep.values(0, context.problem.initial_state[None])[0]) * context.problem.cost_scale, sweep.vertices


class _Sweep:
    """Backward sweep through the stages. future: the future of the current stage; None after the last one."""

    def __init__(self, context: TrainingContext, visited: Floats) -> None:
        problem, boundary = context.problem, context.pool.boundary
        self.context, self.problem, self.visited = context, problem, visited
        self.number = problem.num_stages  # a number in the solver that no stage has
        programs = [stage.program for stage in problem.stages]
        self.relevant: list[Flags] = stored_components(programs, is_priced=boundary is not None)
        self.boxes = boxes(problem, visited)
        self.slopes = slopes_of_boundary(problem.dimension, boundary)
        self.future: InnerFuture | None = None
        self.vertices = 0

    def step_to(self, stage: int) -> None:
        """Compute upper bounds of the cost-to-go before a stage, from those after it."""
        relevant = self.relevant[stage - 1]
        states = np.concatenate([self.visited[stage], corners(self.boxes[stage], relevant)])
        states = states[np.unique(states[:, relevant], axis=0, return_index=True)[1]]
        values = self.values(stage, np.ascontiguousarray(states))
        is_feasible = np.isfinite(values)
        slopes = slopes_before(self.problem, self.context.solver, self.number, stage, self.slopes)
        self.slopes = self._agreed(slopes)
        self.vertices += int(is_feasible.sum())
        self.future = InnerFuture(states[is_feasible], values[is_feasible], self.slopes, relevant)

    def values(self, stage: int, states: Floats) -> Floats:
        """Return the risk of a stage's costs at some states, scaled; inf where a state has no solution."""
        if self.future is not None and not len(self.future.values):
            return np.full(len(states), np.inf)
        if self.future is not None:
            program = inner_program(self.problem.stages[stage].program, self.future)
            self.context.solver.load(self.number, program)
        split = WorkSplit(len(states), self.context.comm.size)
        own = split.block(self.context.comm.rank)
        costs = self._costs(stage, states[own.start : own.stop])
        risk = weighted(risk_into(self.problem, stage).weights(costs), costs)
        return self.context.gather(split, risk.reshape(-1, 1), "values of vertices")[:, 0]

    def _costs(self, stage: int, states: Floats) -> Floats:
        """Return costs, states x openings; an infeasible state does not affect the others."""
        if not len(states):
            return np.zeros((0, self.problem.openings[stage].count))
        try:
            return self._solve(stage, states)
        except SolveFailedError:
            if len(states) == 1:
                return np.full((1, self.problem.openings[stage].count), np.inf)
            half = len(states) // 2
            return np.concatenate([self._costs(stage, states[:half]), self._costs(stage, states[half:])])

    def _solve(self, stage: int, states: Floats) -> Floats:
        program, opening = self.problem.stages[stage].program, self.problem.openings[stage]
        context = self.context
        if self.future is None:
            cuts, number = context.pool.rows(stage, all_cuts=True), stage
            chains = chains_over_openings(opening, states, program)
        else:
            cuts, number = NO_CUTS, self.number
            chains = chains_over_openings(opening, with_lags(program, states), program)
        batch = context.solver.solve(number, cuts, chains, Outputs())
        context.meter.solves.add(Phase.SIMULATION, batch)
        return batch.objective.reshape(len(states), opening.count)

    def _agreed(self, slopes: Slopes) -> Slopes:
        """Broadcast the slopes of rank 0: a solve that fails on a single rank must not make ranks differ."""
        both = np.concatenate([slopes.up, slopes.down])
        self.context.comm.broadcast(both, 0, label="slopes of the cost-to-go")
        return Slopes(*np.split(both, 2))
