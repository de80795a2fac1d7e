"""The whole scenario tree of a small system as one linear program, written down only from the entities.

Every node has all decisions of its stage; nodes are linked by storages and inflows. Nothing of the package is used, so
an error in its stage LPs, its cuts or its states cannot hide here. Money is in thousands of $.
"""

from dataclasses import dataclass, field

import highspy
import numpy as np
from small_system import (
    DEFICIT_COST,
    EVAPORATION_COST,
    EXCESS_COST,
    EXCHANGE_COST,
    FILLING_COST,
    HM3_PER_M3S_HOUR,
    MAX_GENERATION,
    OUTFLOW_BELOW_COST,
    SPILLAGE_COST,
    STORAGE_BELOW_COST,
    TURBINED_COST,
    SmallSystem,
)

MONEY = 1000.0
Terms = dict[int, float]


@dataclass
class Program:
    """Columns and rows in the order in which they are added."""

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

    def equal(self, terms: Terms, other: int | float) -> None:
        """Add a row: a sum equals a column or a number."""
        if isinstance(other, int):
            self.row({**terms, other: -1.0}, 0.0, 0.0)
        else:
            self.row(terms, other, other)

    def minimise(self, column: int) -> float:
        """Return the minimum of one column."""
        return self.solve(column)[0]

    def solve(self, column: int) -> tuple[float, list[float], list[float]]:
        """Minimise one column; return its value, the solution, and the duals of the rows."""
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
    """The state that a node passes to its children."""

    stage: int
    storage: list[int | float]  # columns, or numbers before the first stage
    inflow: list[float]
    value: int  # the column of the cost of this node and its successors
    released: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # by plant and stage: columns of m3/s
    ordered: dict[tuple[int, int], int | float] = field(default_factory=dict)  # by thermal and stage: MW, or its column
    place: int = -1  # among the nodes of the system's tree


def optimum(system: SmallSystem) -> float:
    """Return the cost of the best policy, in $."""
    program = Program()
    # The format clamps initial volumes into the limits of the first stage.
    first = [min(hydro.first_hm3, system.max_storage(at, 0)) for at, hydro in enumerate(system.hydros)]
    orders: dict[tuple[int, int], int | float] = {
        (index, stage): plant.order_mw for index, plant in enumerate(system.thermals) for stage in range(plant.lead)
    }
    root = Node(-1, first, [hydro.last_inflow for hydro in system.hydros], -1, {}, orders)
    return MONEY * program.minimise(_future(program, system, root))


def _future(program: Program, system: SmallSystem, parent: Node) -> int:
    """Add all successors of a node; return the column of their risk-adjusted cost."""
    values = {
        _node(program, system, parent, place, inflow).value: probability
        for place, probability, inflow in _successors(system, parent)
    }
    future = program.column(-np.inf)
    if system.risk is None:
        program.row({future: 1.0} | {value: -probability for value, probability in values.items()}, 0.0, 0.0)
    else:
        _add_risk(program, values, future, *system.risk)
    return future


def _successors(system: SmallSystem, parent: Node) -> list[tuple[int, float, list[float]]]:
    """Return position, probability and inflows of the successors of a node: openings, or nodes of a tree."""
    if system.tree:
        nodes = enumerate(system.tree)
        return [(at, node.probability, list(node.inflow)) for at, node in nodes if node.parent == parent.place]
    return [
        (
            -1,
            1.0 / system.num_openings,
            [system.inflow(at, parent.stage + 1, opening, before) for at, before in enumerate(parent.inflow)],
        )
        for opening in range(system.num_openings)
    ]


def _add_risk(program: Program, values: dict[int, float], future: int, alpha: float, share: float) -> None:
    """Add (1 - share) of the mean and `share` of the CVaR, by the program of Rockafellar and Uryasev.

    future = (1 - share) mean + share (quantile + mean of what exceeds it / alpha).
    """
    quantile = program.column(-np.inf)
    terms: Terms = {future: 1.0, quantile: -share}
    for value, probability in values.items():
        above = program.column()
        program.row({above: 1.0, value: -1.0, quantile: 1.0}, 0.0, np.inf)
        terms |= {above: -share * probability / alpha, value: -(1.0 - share) * probability}
    program.row(terms, 0.0, np.inf)


def _node(program: Program, system: SmallSystem, parent: Node, place: int, inflow: list[float]) -> Node:
    """Add all decisions of one stage in one node of the tree, and all nodes behind it."""
    stage = parent.stage + 1
    cost: Terms = {}
    power = _Power(program, system, cost, stage, dict(parent.ordered))
    water = _Water(program, system, cost, power, parent)
    storage = water.balance(inflow)
    power.balance(stage)
    node = Node(stage, storage, inflow, program.column(-np.inf), water.released, power.ordered, place)
    terms = {node.value: -1.0} | {column: value / MONEY for column, value in cost.items()}
    if stage + 1 < system.num_stages:
        terms[_future(program, system, node)] = system.discount(stage)
    program.row(terms, 0.0, 0.0)
    return node


class _Power:
    """Power balances of one node, by bus and block; each source adds its terms."""

    def __init__(
        self,
        program: Program,
        system: SmallSystem,
        cost: Terms,
        stage: int,
        ordered: dict[tuple[int, int], int | float],
    ) -> None:
        self.program, self.system, self.cost, self.stage, self.ordered = program, system, cost, stage, ordered
        self.blocks = range(len(system.hours))
        self.supply: list[list[Terms]] = [[{} for _ in self.blocks] for _ in range(system.num_buses)]
        for index, plant in enumerate(system.thermals):
            if plant.lead and stage + plant.lead < system.num_stages:
                self._order(index, stage + plant.lead)
        self._plants()
        self._network()

    def _order(self, index: int, delivery: int) -> None:
        """Decide a later delivery of a plant, at the price of the delivery stage, paid then."""
        most, price = self.system.thermal(index, delivery)
        column = self.program.column(self.system.thermals[index].min_mw, most)
        weight = float(np.prod([self.system.discount(stage) for stage in range(self.stage, delivery)]))
        self.cost[column] = price * sum(self.system.hours) * weight
        self.ordered[index, delivery] = column

    def add(self, bus: int, block: int, price: float, upper: float, lower: float = 0.0, sign: float = 1.0) -> int:
        """Add a column of MW with its price."""
        column = self.program.column(lower, upper)
        self.supply[bus][block][column] = sign
        self.cost[column] = price * self.system.hours[block]
        return column

    def _plants(self) -> None:
        system = self.system
        deliveries: dict[int, Terms] = {}
        for block in self.blocks:
            running: Terms = {}
            for index, thermal in enumerate(system.thermals):
                most, price = system.thermal(index, self.stage)
                column = self.add(thermal.bus, block, 0.0 if thermal.lead else price, most, thermal.min_mw)
                running[column] = 1.0
                if thermal.lead:
                    deliveries.setdefault(index, {})[column] = system.hours[block] / sum(system.hours)
            if system.floor is not None:
                least, penalty = system.floor
                missing = self.program.column(0.0)
                self.cost[missing] = penalty * system.hours[block]
                self.program.row(running | {missing: 1.0}, least, np.inf)
            for source in system.sources:
                self.add(source.bus, block, -source.reward, source.available_mw)
            for contract in system.contracts:
                self.add(contract.bus, block, contract.price, contract.max_mw, sign=contract.sign)
        for (
            index,
            terms,
        ) in deliveries.items():  # the mean over the stage equals the order, distributed over its blocks
            self.program.equal(terms, self.ordered[index, self.stage])

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
    """Reservoirs of one node. `net[hydro][block]`: what leaves, in m3/s, less what other plants send.

    volumes: by plant, what it has at first and at the end of each period (all parallel blocks are one period).
    """

    def __init__(self, program: Program, system: SmallSystem, cost: Terms, power: _Power, parent: Node) -> None:
        self.program, self.system, self.cost, self.power = program, system, cost, power
        self.released = dict(parent.released)
        self.net: list[list[Terms]] = [[{} for _ in system.hours] for _ in system.hydros]
        self.volumes = [[before, *self._ends(hydro)] for hydro, before in enumerate(parent.storage)]
        for hydro in range(len(system.hydros)):
            if system.is_absent(hydro, power.stage):
                self.volumes[hydro] = [parent.storage[hydro]]
                continue
            self._fill(hydro)
            self.released[hydro, power.stage] = []
            for block, hours in enumerate(system.hours):
                self._release(hydro, block, hours)
        for pump in system.pumps:
            for block in range(len(system.hours)):
                column = power.add(pump.bus, block, 0.0, pump.max_m3s, sign=-pump.consumption)
                self._send(column, pump.source, pump.destination, block)

    def _ends(self, hydro: int) -> list[int]:
        plant, most = self.system.hydros[hydro], self.system.max_storage(hydro, self.power.stage)
        least = plant.min_hm3 if plant.filling is None else 0.0
        return [self.program.column(least, most) for _ in self._periods()]

    def _fill(self, hydro: int) -> None:
        """Require the volume of a plant while it is filled and, at another price, ever after."""
        plant, stage = self.system.hydros[hydro], self.power.stage
        if plant.filling is None:
            return
        least, price = plant.min_hm3, STORAGE_BELOW_COST
        if self.system.is_filling(hydro, stage):
            least, price = self.system.filling_target(hydro, stage), FILLING_COST
        missing, last = self.program.column(), self.volumes[hydro][-1]
        assert isinstance(last, int)
        self.cost[missing] = price
        self.program.row({last: 1.0, missing: 1.0}, least, np.inf)

    def _send(self, column: int, source: int, target: int | None, block: int) -> None:
        self.net[source][block][column] = 1.0
        if target is not None:
            self.net[target][block][column] = -1.0

    def _release(self, hydro: int, block: int, hours: float) -> None:
        plant, most = self.system.hydros[hydro], self.system.max_turbined(hydro, self.power.stage)
        rests = self.system.is_filling(hydro, self.power.stage)
        most = 0.0 if rests else most
        if plant.planes:
            turbined = self.program.column(0.0, most)
            self.cost[turbined] = TURBINED_COST * hours
        else:
            turbined = self.power.add(plant.bus, block, TURBINED_COST, most, sign=plant.productivity)
        spilled, missing = self.program.columns(2)
        self.cost |= {spilled: SPILLAGE_COST * hours, missing: OUTFLOW_BELOW_COST * hours}
        self.program.row({turbined: 1.0, spilled: 1.0, missing: 1.0}, plant.min_outflow, np.inf)
        if plant.planes and not rests:
            self._generate(hydro, block, turbined, spilled)
        receiver = None if plant.travel_hours else self.system.receiver(hydro, self.power.stage)
        for column in (turbined, spilled):
            self._send(column, hydro, receiver, block)
            self.released[hydro, self.power.stage].append(column)

    def _generate(self, hydro: int, block: int, turbined: int, spilled: int) -> None:
        """Limit power by every plane, at the mean of the volumes before and after."""
        plant = self.system.hydros[hydro]
        generated = self.power.add(plant.bus, block, 0.0, MAX_GENERATION)
        for zero, by_volume, by_turbined, by_spilled in plant.planes:
            terms = {generated: 1.0, turbined: -by_turbined, spilled: -by_spilled}
            right = zero + self._mean_volume(terms, hydro, -by_volume)
            self.program.row(terms, -np.inf, right)

    def _mean_volume(self, terms: Terms, hydro: int, factor: float) -> float:
        """Add a multiple of the mean of first and last volume; its known part belongs on the right-hand side."""
        first, *_, last = self.volumes[hydro]
        assert isinstance(last, int)
        terms[last] = terms.get(last, 0.0) + factor / 2.0
        if isinstance(first, int):
            terms[first] = terms.get(first, 0.0) + factor / 2.0
            return 0.0
        return -factor / 2.0 * first

    def balance(self, inflow: list[float]) -> list[int | float]:
        """Add end volumes; with chronological blocks every block has its own."""
        arriving, stage = list(inflow), self.power.stage
        for hydro, own in enumerate(inflow):
            receiver = self.system.receiver(hydro, stage)
            if self.system.is_absent(hydro, stage) and receiver is not None:
                arriving[receiver] += own
        return [self._last_volume(hydro, arriving[hydro]) for hydro in range(len(inflow))]

    def _last_volume(self, hydro: int, inflow: float) -> int | float:
        if self.system.is_absent(hydro, self.power.stage):
            return self.volumes[hydro][-1]
        for number, blocks in enumerate(self._periods()):
            before, end = self.volumes[hydro][number : number + 2]
            hm3 = {block: HM3_PER_M3S_HOUR * self.system.hours[block] for block in blocks}
            terms: Terms = {end: 1.0}  # type: ignore[dict-item]
            for block in blocks:
                terms |= {column: value * hm3[block] for column, value in self.net[hydro][block].items()}
            right = inflow * sum(hm3.values()) + self._under_way(terms, hydro)
            if self.system.hydros[hydro].evaporation_mm:
                terms[self._evaporated(hydro)] = sum(hm3.values())
            if isinstance(before, int):
                terms[before] = -1.0
            else:
                right += before
            self.program.row(terms, right, right)
        return self.volumes[hydro][-1]

    def _under_way(self, terms: Terms, hydro: int) -> float:
        """Add releases of plants upstream, each delayed by its travel time. Stages have one block.

        Returns the hm3 that were released before the study.
        """
        known = 0.0
        for above, plant in enumerate(self.system.hydros):
            if plant.downstream != hydro or not plant.travel_hours:
                continue
            for (source, sent), columns in self.released.items():
                if source == above:
                    hours = self._arriving(sent, sent + 1, plant.travel_hours)
                    for column in columns:
                        terms[column] = terms.get(column, 0.0) - HM3_PER_M3S_HOUR * hours
            known += HM3_PER_M3S_HOUR * plant.released_before * self._arriving(-10, 0, plant.travel_hours)
        return known

    def _arriving(self, first: int, end: int, delay: float) -> float:
        """Return the hours of this stage in which releases of a period arrive."""
        length = sum(self.system.hours)
        now = self.power.stage * length
        return max(0.0, min(end * length + delay, now + length) - max(first * length + delay, now))

    def _evaporated(self, hydro: int) -> int:
        """Add evaporation, linear in the mean volume with priced deviations; m3/s over a calendar month."""
        plant, stage = self.system.hydros[hydro], self.power.stage
        month_s = 86400.0 * (self.system.first_day(stage + 1) - self.system.first_day(stage)).days
        slope = (plant.area[1] - plant.area[0]) / (plant.max_hm3 - plant.min_hm3)
        rate = plant.evaporation_mm / 1000.0 * slope * 1e6 / month_s
        constant = plant.evaporation_mm / 1000.0 * plant.area[0] * 1e6 / month_s - rate * plant.min_hm3
        most = 2.0 * abs(constant + rate * self.system.max_storage(hydro, stage))  # in both directions: rain counts
        evaporated = self.program.column(-most, most)
        less, more = self.program.columns(2)
        self.cost |= dict.fromkeys((less, more), EVAPORATION_COST * sum(self.system.hours))
        terms = {evaporated: 1.0, less: 1.0, more: -1.0}
        right = constant + self._mean_volume(terms, hydro, -rate)
        self.program.row(terms, right, right)
        return evaporated

    def _periods(self) -> list[list[int]]:
        blocks = list(range(len(self.system.hours)))
        return [[block] for block in blocks] if self.system.is_chronological else [blocks]
