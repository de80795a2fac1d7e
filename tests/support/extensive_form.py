"""The whole scenario tree of a small system as one linear program, written down from the entities alone.

Every node has all decisions of its stage; nodes are linked by storages and inflows. Nothing of the package is used, so
an error in its stage LPs, its cuts or its states cannot hide here. Money is in thousands of $.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import highspy
import numpy as np
from small_system import (
    DEFICIT_COST,
    EXCESS_COST,
    EXCHANGE_COST,
    HM3_PER_M3S_HOUR,
    OUTFLOW_BELOW_COST,
    SPILLAGE_COST,
    TURBINED_COST,
    SmallSystem,
)

MONEY = 1000.0
Terms = dict[int, float]


@dataclass
class Program:
    """Columns and rows as they come."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)

    def column(self, lower: float = 0.0, upper: float = np.inf) -> int:
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def columns(self, count: int, upper: float = np.inf) -> list[int]:
        return [self.column(0.0, upper) for _ in range(count)]

    def row(self, terms: Terms, lower: float, upper: float) -> None:
        self.rows.append((terms, lower, upper))

    def minimise(self, column: int) -> float:
        """The least value of one column."""
        return self.solve(column)[0]

    def solve(self, column: int) -> tuple[float, list[float], list[float]]:
        """The least value of one column, all columns where it is reached, and the duals of the rows."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.lower), len(self.rows)
        lp.col_cost_ = [1.0 if index == column else 0.0 for index in range(len(self.lower))]
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_ = [lower for _, lower, _ in self.rows]
        lp.row_upper_ = [upper for _, _, upper in self.rows]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for terms, _, _ in self.rows)])
        lp.a_matrix_.index_ = [index for terms, _, _ in self.rows for index in terms]
        lp.a_matrix_.value_ = [value for terms, _, _ in self.rows for value in terms.values()]
        highs = highspy.Highs()
        highs.silent()
        for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            highs.setOptionValue(tolerance, 1e-9)
        highs.passModel(lp)
        highs.run()
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        solution = highs.getSolution()
        return float(highs.getObjectiveValue()), list(solution.col_value), list(solution.row_dual)


@dataclass(frozen=True)
class Node:
    """What a node hands to its children."""

    stage: int
    storage: list[int | float]  # columns, or numbers before the first stage
    inflow: list[float]
    value: int  # the column that holds what this node and all behind it cost


def optimum(system: SmallSystem) -> float:
    """What the best policy costs, in $."""
    program = Program()
    # The format clamps initial volumes into the limits of the first stage.
    first = [min(hydro.first_hm3, system.max_storage(at, 0)) for at, hydro in enumerate(system.hydros)]
    root = Node(-1, first, [hydro.last_inflow for hydro in system.hydros], -1)
    return MONEY * program.minimise(_future(program, system, root))


def _future(program: Program, system: SmallSystem, parent: Node) -> int:
    """A column for the risk-adjusted cost of everything behind a node."""
    values = [_node(program, system, parent, opening).value for opening in range(system.num_openings)]
    future = program.column(-np.inf)
    if system.risk is None:
        terms = {future: 1.0} | dict.fromkeys(values, -1.0 / len(values))
        program.row(terms, 0.0, 0.0)
    else:
        _add_risk(program, values, future, *system.risk)
    return future


def _add_risk(program: Program, values: list[int], future: int, alpha: float, share: float) -> None:
    """(1 - share) of the mean and `share` of the conditional value at risk, by the program of Rockafellar and Uryasev.

    future = (1 - share) mean + share (quantile + mean of what exceeds it / alpha).
    """
    probability = 1.0 / len(values)
    quantile = program.column(-np.inf)
    terms: Terms = {future: 1.0, quantile: -share}
    for value in values:
        above = program.column()
        program.row({above: 1.0, value: -1.0, quantile: 1.0}, 0.0, np.inf)
        terms |= {above: -share * probability / alpha, value: -(1.0 - share) * probability}
    program.row(terms, 0.0, np.inf)


def _node(program: Program, system: SmallSystem, parent: Node, opening: int) -> Node:
    """All decisions of one stage in one node of the tree, and all nodes behind it."""
    stage = parent.stage + 1
    hydros = range(len(system.hydros))
    inflow = [system.inflow(hydro, stage, opening, parent.inflow[hydro]) for hydro in hydros]
    cost: Terms = {}
    power = _Power(program, system, cost, stage)
    storage = _Water(program, system, cost, power).balance(parent.storage, inflow)
    power.balance(stage)
    node = Node(stage, storage, inflow, program.column(-np.inf))
    terms = {node.value: -1.0} | {column: value / MONEY for column, value in cost.items()}
    if stage + 1 < system.num_stages:
        terms[_future(program, system, node)] = system.discount(stage)
    program.row(terms, 0.0, 0.0)
    return node


class _Power:
    """The balances of one node, by bus and block; whoever has power adds to them."""

    def __init__(self, program: Program, system: SmallSystem, cost: Terms, stage: int) -> None:
        self.program, self.system, self.cost, self.stage = program, system, cost, stage
        self.blocks = range(len(system.hours))
        self.supply: list[list[Terms]] = [[{} for _ in self.blocks] for _ in range(system.num_buses)]
        self._plants()
        self._network()

    def add(self, bus: int, block: int, price: float, upper: float, lower: float = 0.0, sign: float = 1.0) -> int:
        """A column of MW with its price."""
        column = self.program.column(lower, upper)
        self.supply[bus][block][column] = sign
        self.cost[column] = price * self.system.hours[block]
        return column

    def _plants(self) -> None:
        system = self.system
        for block in self.blocks:
            running: Terms = {}
            for index, thermal in enumerate(system.thermals):
                most, price = system.thermal(index, self.stage)
                running[self.add(thermal.bus, block, price, most, thermal.min_mw)] = 1.0
            if system.floor is not None:
                least, penalty = system.floor
                missing = self.program.column(0.0)
                self.cost[missing] = penalty * system.hours[block]
                self.program.row(running | {missing: 1.0}, least, np.inf)
            for source in system.sources:
                self.add(source.bus, block, -source.reward, source.available_mw)
            for contract in system.contracts:
                self.add(contract.bus, block, contract.price, contract.max_mw, sign=contract.sign)

    def _network(self) -> None:
        for block in self.blocks:
            for bus in range(self.system.num_buses):
                self.add(bus, block, DEFICIT_COST, np.inf)
                self.add(bus, block, EXCESS_COST, np.inf, sign=-1.0)
            for line in self.system.lines:
                arriving = 1.0 - line.losses_percent / 100.0
                direct = self.add(line.source, block, EXCHANGE_COST, line.direct_mw, sign=-1.0)
                reverse = self.add(line.target, block, EXCHANGE_COST, line.reverse_mw, sign=-1.0)
                self.supply[line.target][block][direct] = arriving
                self.supply[line.source][block][reverse] = arriving

    def balance(self, stage: int) -> None:
        for bus, by_block in enumerate(self.supply):
            for block, terms in enumerate(by_block):
                load = self.system.loads[stage][bus] * self.system.load_factors[block]
                self.program.row(terms, load, load)


class _Water:
    """Reservoirs of one node. `net[hydro][block]`: what leaves, in m3/s, less what other plants send."""

    def __init__(self, program: Program, system: SmallSystem, cost: Terms, power: _Power) -> None:
        self.program, self.system, self.cost, self.power = program, system, cost, power
        self.net: list[list[Terms]] = [[{} for _ in system.hours] for _ in system.hydros]
        for hydro in range(len(system.hydros)):
            for block, hours in enumerate(system.hours):
                self._release(hydro, block, hours)
        for pump in system.pumps:
            for block in range(len(system.hours)):
                column = power.add(pump.bus, block, 0.0, pump.max_m3s, sign=-pump.consumption)
                self._send(column, pump.source, pump.destination, block)

    def _send(self, column: int, source: int, target: int | None, block: int) -> None:
        self.net[source][block][column] = 1.0
        if target is not None:
            self.net[target][block][column] = -1.0

    def _release(self, hydro: int, block: int, hours: float) -> None:
        plant, most = self.system.hydros[hydro], self.system.max_turbined(hydro, self.power.stage)
        turbined = self.power.add(plant.bus, block, TURBINED_COST, most, sign=plant.productivity)
        spilled, missing = self.program.columns(2)
        self.cost |= {spilled: SPILLAGE_COST * hours, missing: OUTFLOW_BELOW_COST * hours}
        self.program.row({turbined: 1.0, spilled: 1.0, missing: 1.0}, plant.min_outflow, np.inf)
        for column in (turbined, spilled):
            self._send(column, hydro, plant.downstream, block)

    def balance(self, before: list[int | float], inflow: list[float]) -> list[int | float]:
        """End volumes; with chronological blocks every block has its own."""
        return [self._last_volume(hydro, before[hydro], inflow[hydro]) for hydro in range(len(inflow))]

    def _last_volume(self, hydro: int, before: int | float, inflow: float) -> int | float:
        plant = self.system.hydros[hydro]
        volume = before
        for blocks in self._periods():
            end = self.program.column(plant.min_hm3, self.system.max_storage(hydro, self.power.stage))
            hm3 = {block: HM3_PER_M3S_HOUR * self.system.hours[block] for block in blocks}
            terms = {end: 1.0}
            for block in blocks:
                terms |= {column: value * hm3[block] for column, value in self.net[hydro][block].items()}
            right = inflow * sum(hm3.values())
            if isinstance(volume, int):
                terms[volume] = -1.0
            else:
                right += volume
            self.program.row(terms, right, right)
            volume = end
        return volume

    def _periods(self) -> Iterator[list[int]]:
        blocks = list(range(len(self.system.hours)))
        yield from ([block] for block in blocks) if self.system.is_chronological else (blocks,)
