"""Random stage programs of any shape, and the same LPs in full for highspy."""

from dataclasses import dataclass, replace

import highspy
import numpy as np

from cobre.solver.program import Names, StageProgram

EMPTY = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Shape:
    """The shape of a random program.

    degenerate: many equal costs and right-hand sides. spread: decades between the largest and the smallest coefficient.
    inequalities: share of rows with one bound. boxed: share of columns between two bounds. tiers: cheaper slack columns
    of each row and side that end after a while, as tiers of a deficit do. free: columns without bounds. cost_decades:
    between the largest and the smallest cost of a column. size: of right-hand sides; ranges of boxed columns follow.
    """

    rows: int = 30
    columns: int = 60
    states: int = 4
    degenerate: bool = False
    spread: float = 0.0
    inequalities: float = 0.4
    boxed: float = 0.5
    tiers: int = 0
    free: int = 0
    cost_decades: float = 0.0
    size: float = 1.0


def random_program(shape: Shape, seed: int) -> StageProgram:
    """Return a program that is feasible for every right-hand side: its rows have expensive slacks on both sides."""
    random = np.random.default_rng(seed)
    rows, inner, slacks = shape.rows, shape.columns, 2 * shape.rows * (1 + shape.tiers)
    matrix = np.zeros((rows, inner + slacks + 1))
    for row in range(rows):
        chosen = random.choice(inner, size=int(random.integers(2, 6)), replace=False)
        matrix[row, chosen] = _coefficients(shape, random, len(chosen))
    matrix[:, inner:-1] = np.tile(np.hstack([np.eye(rows), -np.eye(rows)]), 1 + shape.tiers)
    columns = matrix.shape[1]
    prices = 500.0 * 0.5 ** np.repeat(np.arange(1 + shape.tiers), 2 * rows)
    cost = np.concatenate([_costs(shape, random, inner), prices, [1.0]])
    upper = np.where(random.random(columns) < shape.boxed, shape.size * random.uniform(5.0, 50.0, columns), np.inf)
    upper[inner:] = np.inf
    upper[inner + 2 * rows : -1] = 3.0
    lower, free = np.zeros(columns), np.arange(inner - shape.free, inner)
    lower[free], upper[free], cost[free] = -np.inf, np.inf, 0.0
    is_open = random.random(rows) < shape.inequalities
    row_index, column_index = np.nonzero(matrix)
    return StageProgram(
        cost=cost,
        column_lower=lower,
        column_upper=upper,
        row_lower=np.zeros(rows),
        row_upper=np.where(is_open, np.inf, 0.0),
        row_start=np.searchsorted(row_index, np.arange(rows + 1)).astype(np.int32),
        column_index=column_index.astype(np.int32),
        value=matrix[row_index, column_index],
        column_scale=np.ones(columns),
        row_scale=np.ones(rows),
        future_cost=columns - 1,
        state_column=np.arange(shape.states, dtype=np.int32),
        autoregression=np.zeros((0, rows)),
        lag_from=EMPTY,
        lag_share=np.zeros(0),
        passed_from=EMPTY,
        truncates=False,
        input_row=np.arange(rows, dtype=np.int32),
        input_index=(shape.states + np.arange(rows)).astype(np.int32),
        input_value=np.ones(rows),
        load_row=EMPTY,
        load_bus=EMPTY,
        load_factor=np.zeros(0),
        source_column=EMPTY,
        source_index=EMPTY,
        source_factor=np.zeros(0),
        source_is_pinned=np.zeros(0, np.uint8),
        names=Names(tuple(f"column{j}" for j in range(columns)), tuple(f"row{i}" for i in range(rows))),
    )


@dataclass(frozen=True)
class Planes:
    """A stage of plants whose generation is limited by planes over storage, turbined and spilt water.

    Columns of plant p: storage, turbined, spilt water and generation at p, plants + p ...; the storages of the first
    plants are states. Rows: a water balance a plant, a balance a bus, then the planes, plant by plant.
    """

    program: StageProgram
    plants: int
    buses: int
    planes: int

    def right_sides(self, count: int, seed: int) -> np.ndarray:
        """Draw inflows and loads; planes stay where they are."""
        random = np.random.default_rng(seed)
        sides = np.zeros((count, len(self.program.row_lower)))
        sides[:, : self.plants] = random.uniform(2.0, 20.0, (count, self.plants))
        loads = random.uniform(0.4, 1.2, (count, self.buses)) * 10.0 * self.plants / self.buses
        sides[:, self.plants : self.plants + self.buses] = loads
        return sides

    def pairs(self, status: np.ndarray) -> int:
        """Count the plants of a basis with basic generation and an active plane."""
        columns = len(self.program.cost)
        generation = status[3 * self.plants : 4 * self.plants] == 1
        first = columns + self.plants + self.buses
        active = (status[first : first + self.plants * self.planes] != 1).reshape(self.plants, self.planes)
        return int((generation & active.any(axis=1)).sum())


def random_planes(seed: int, plants: int = 100, buses: int = 3, planes: int = 4, states: int = 4) -> Planes:
    """Return plants whose generation has an upper bound below some planes; rows have scales of their own."""
    random = np.random.default_rng(seed)
    rows, columns = plants + buses + plants * planes, 4 * plants + 2 * buses + 1
    matrix, upper = np.zeros((rows, columns)), np.full(columns, np.inf)
    cost = np.zeros(columns)
    upper[:plants], upper[plants : 2 * plants] = 30.0, random.uniform(5.0, 25.0, plants)
    cost[2 * plants : 3 * plants] = random.uniform(0.001, 0.01, plants)
    upper[3 * plants : 4 * plants] = random.uniform(6.0, 25.0, plants)
    for plant in range(plants):
        matrix[plant, [plant, plants + plant, 2 * plants + plant]] = 1.0
        matrix[plants + plant % buses, 3 * plants + plant] = 1.0
        for plane in range(planes):
            row, scale = plants + buses + plant * planes + plane, 2.0 ** random.integers(-2, 3)
            slopes = [-random.uniform(0.01, 0.1), -1.5 + 0.2 * plane, 0.1 + 0.05 * plane]
            matrix[row, plant : 3 * plants : plants] = scale * np.array(slopes)
            matrix[row, 3 * plants + plant] = scale
    limit = np.zeros(rows)
    limit[plants + buses :] = np.tile(np.arange(planes), plants) * np.abs(
        matrix[plants + buses :, 3 * plants : -1]
    ).max(1)
    for bus in range(buses):
        deficit = 4 * plants + 2 * bus
        matrix[plants + bus, deficit : deficit + 2] = 1.0, -1.0
        cost[deficit : deficit + 2] = 50.0 + 10.0 * bus, 0.01
    cost[-1] = 1.0
    row_index, column_index = np.nonzero(matrix)
    is_plane = np.arange(rows) >= plants + buses
    program = replace(
        random_program(Shape(rows=rows, states=states), 0),
        cost=cost,
        column_lower=np.zeros(columns),
        column_upper=upper,
        row_lower=np.where(is_plane, -np.inf, 0.0),
        row_upper=limit,
        row_start=np.searchsorted(row_index, np.arange(rows + 1)).astype(np.int32),
        column_index=column_index.astype(np.int32),
        value=matrix[row_index, column_index],
        column_scale=np.ones(columns),
        future_cost=columns - 1,
        names=Names(tuple(f"column{j}" for j in range(columns)), tuple(f"row{i}" for i in range(rows))),
    )
    return Planes(program, plants, buses, planes)


def _coefficients(shape: Shape, random: np.random.Generator, count: int) -> np.ndarray:
    if shape.degenerate:
        return random.choice([-1.0, 1.0], count)
    return (
        random.uniform(0.5, 2.0, count)
        * random.choice([-1.0, 1.0], count)
        * 10.0 ** random.uniform(0.0, shape.spread, count)
    )


def _costs(shape: Shape, random: np.random.Generator, count: int) -> np.ndarray:
    if shape.cost_decades:
        return 20.0 * 10.0 ** random.uniform(-shape.cost_decades, 0.0, count)
    return random.choice([0.0, 1.0, 2.0], count) if shape.degenerate else random.uniform(0.0, 20.0, count)


def right_sides(shape: Shape, count: int, seed: int) -> np.ndarray:
    """Draw inflows that move every row."""
    random = np.random.default_rng(seed)
    sides = random.uniform(-20.0, 40.0, (count, shape.rows))
    return shape.size * (np.round(sides / 10.0) * 10.0 if shape.degenerate else sides)


def whole_lp(program: StageProgram, right: np.ndarray, cuts: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the optimum with every cut as a row; raises ValueError when there is none."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for cost, lower, upper in zip(program.cost, program.column_lower, program.column_upper, strict=True):
        model.addCol(cost, lower, upper, 0, [], [])
    for row, (start, end) in enumerate(zip(program.row_start[:-1], program.row_start[1:], strict=True)):
        index, value = program.column_index[start:end], program.value[start:end]
        model.addRow(
            program.row_lower[row] + right[row], program.row_upper[row] + right[row], end - start, index, value
        )
    for intercept, slope in zip(*cuts, strict=True):
        index = np.append(program.state_column, program.future_cost).astype(np.int32)
        model.addRow(intercept, highspy.kHighsInf, len(index), index, np.append(-slope, 1.0))
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ValueError(model.modelStatusToString(model.getModelStatus()))
    return float(model.getObjectiveValue())
