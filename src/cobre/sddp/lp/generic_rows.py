"""Generic constraints: rows that users define over the decisions of the LP."""

from collections.abc import Callable, Iterator
from math import isfinite

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, Flags, Indices, distinct_values
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT, GenericTerm, StateSlot
from cobre.sddp.lp.columns import Columns
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder
from cobre.sddp.lp.plan import StagePlan

# A part of a term: a column, or an input of the stage, and what it is multiplied with.
Part = tuple[int, float]


class VariableTerms:
    """Columns and coefficients of the variables of generic constraints; `block` None: the whole stage."""

    def __init__(self, plan: StagePlan, columns: Columns) -> None:
        self._plan = plan
        self._columns = columns
        self._readers: dict[str, Callable[[GenericTerm, int | None], Iterator[Part]]] = {
            "hydro_storage": lambda term, _: self._last_volume(term.entity),
            "hydro_storage_final": lambda term, _: self._last_volume(term.entity),
            "hydro_useful_volume_final": lambda term, _: self._last_volume(term.entity),
            "hydro_turbined": lambda term, block: self._of_plant("turbined", term, block, powered=False),
            "hydro_spillage": lambda term, block: self._plain("spilled", term, block),
            "hydro_diversion": lambda term, block: self._plain("diverted", term, block),
            "hydro_outflow": self._outflow,
            "hydro_inflow": self._arriving,
            "hydro_generation": self._generation,
            "hydro_evaporation": lambda term, _: self._evaporation(term.entity),
            "anticipated_decision": lambda term, _: self._decisions(term.entity),
            "thermal_generation": lambda term, block: self._plain("thermal", term, block),
            "line_direct": lambda term, block: self._plain("direct", term, block),
            "line_reverse": lambda term, block: self._plain("reverse", term, block),
            "line_exchange": self._exchange,
            "bus_deficit": self._deficit,
            "bus_excess": lambda term, block: self._plain("excess", term, block),
            "pumping_flow": lambda term, block: self._plain("pumped", term, block),
            "pumping_power": self._pumping_power,
            "contract_import": lambda term, block: self._plain("contract", term, block),
            "contract_export": lambda term, block: self._plain("contract", term, block),
            "non_controllable_generation": lambda term, block: self._plain("source", term, block),
            "non_controllable_curtailment": self._curtailment,
        }

    def parts(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        """Return columns of a term with their coefficients."""
        if term.variable in INITIAL_VOLUMES:
            return iter(())
        return self._readers[term.variable](term, term.block if term.block is not None else block)

    def _blocks(self, block: int | None) -> range:
        return range(self._plan.num_blocks) if block is None else range(block, block + 1)

    def _plain(self, name: str, term: GenericTerm, block: int | None, sign: float = 1.0) -> Iterator[Part]:
        table = getattr(self._columns, name)
        return ((int(table[term.entity, k]), sign) for k in self._blocks(block))

    def _decisions(self, thermal: int) -> Iterator[Part]:
        """Yield what this stage decides of a plant's later power, all deliveries together."""
        is_decided = self._plan.data.commitment.is_decided
        for number, slot in enumerate(self._plan.layout.decided_of(COMMITMENT)):
            if slot.entity == thermal and is_decided[number]:
                yield int(self._columns.commitment[number]), 1.0

    def _last_volume(self, hydro: int) -> Iterator[Part]:
        yield int(self._columns.storage[hydro, -1]), 1.0

    def _evaporation(self, hydro: int) -> Iterator[Part]:
        """Return evaporation of the stage: the mean over its hours where blocks are chronological."""
        share = self._plan.point_hours / self._plan.total_hours
        return zip(self._columns.evaporated[hydro].tolist(), share.tolist(), strict=True)

    def _of_plant(self, name: str, term: GenericTerm, block: int | None, *, powered: bool) -> Iterator[Part]:
        table = getattr(self._columns, name)
        plan = self._plan
        for pair in np.flatnonzero(plan.pair_hydro == term.entity).tolist():
            if term.bus is None or plan.pair_bus[pair] == term.bus:
                factor = float(plan.pair_productivity[pair]) if powered else 1.0
                yield from ((int(table[pair, k]), factor) for k in self._blocks(block))

    def _outflow(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        yield from self._of_plant("turbined", term, block, powered=False)
        yield from self._plain("spilled", term, block)

    def _arriving(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        """Yield what other plants release or divert to this one; natural inflow is an input."""
        topology, columns = self._plan.topology, self._columns
        arrives = np.append(self._plan.arrives_at(term.entity), False)  # -1: nowhere
        below = np.where(self._plan.has_travel_time, -1, topology.downstream)
        yield from self._arriving_in_time(arrives, block)
        for table, target in (
            (columns.turbined, below[self._plan.pair_hydro]),
            (columns.spilled, below),
            (columns.diverted, topology.diversion_target),
        ):
            for index in np.flatnonzero(arrives[target]).tolist():
                yield from ((int(table[index, k]), 1.0) for k in self._blocks(block))

    def _arriving_in_time(self, arrives: Flags, block: int | None) -> Iterator[Part]:
        """Yield releases of this stage at other plants that arrive within it, as flows of a block."""
        plan, columns, numbers = self._plan, self._columns, self._plan.data.transit
        for arc in np.flatnonzero(arrives[numbers.target]).tolist():
            shares = plan.by_block(numbers.arrival_share[arc])
            flows = np.concatenate(
                [columns.turbined[plan.pair_hydro == numbers.hydro[arc]], columns.spilled[[numbers.hydro[arc]]]]
            )
            for k in self._blocks(block):
                factors = plan.hours * shares[:, plan.period_of(k)] / plan.point_hours[plan.period_of(k)]
                yield from ((int(flow[at]), float(factors[at])) for flow in flows for at in range(plan.num_blocks))

    def _curtailment(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        """Yield available power less generated power."""
        yield from self._plain("available", term, block)
        yield from self._plain("source", term, block, -1.0)

    def _generation(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        yield from self._of_plant("turbined", term, block, powered=True)
        yield from self._of_plant("generation", term, block, powered=False)

    def _exchange(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        yield from self._plain("direct", term, block)
        yield from self._plain("reverse", term, block, -1.0)

    def _deficit(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        table = self._columns.deficit[term.entity]
        return ((int(table[segment, k]), 1.0) for segment in range(len(table)) for k in self._blocks(block))

    def _pumping_power(self, term: GenericTerm, block: int | None) -> Iterator[Part]:
        rate = float(self._plan.pumping_consumption[term.entity])
        return self._plain("pumped", term, block, rate)


INITIAL_VOLUMES = ("hydro_storage_initial", "hydro_useful_volume_initial")


def add_generic_rows(lp: LpBuilder, plan: StagePlan, columns: Columns) -> Indices:
    """Add one row each, with slacks where allowed; return rows x 2: the columns by which a row is short, and over."""
    generic = plan.data.generic_rows
    names = [f"generic_{number}_{row.name}" for number, row in enumerate(generic)]
    limits = np.array([(row.lower, row.upper) for row in generic]).reshape(-1, 2)
    rows = lp.add_labelled_rows(names, np.ones(len(generic), bool), limits[:, 0], limits[:, 1])
    variables = VariableTerms(plan, columns)
    entries: list[tuple[int, int, float]] = []
    for row_index, row in zip(rows.tolist(), generic, strict=True):
        for term in row.terms:
            for column, factor in variables.parts(term, row.block):
                entries.append((row_index, column, factor * term.coefficient))
            _move(lp, plan, row_index, term, term.block if term.block is not None else row.block)
    # All at once: a deck has thousands, and arrays of one element cost as much as those of hundreds.
    if entries:
        lp.add_entries(*(np.array(part) for part in zip(*entries, strict=True)))
    return _add_slacks(lp, plan, rows)


def _move(lp: LpBuilder, plan: StagePlan, row_index: int, term: GenericTerm, block: int | None) -> None:
    """Move incoming volumes and natural inflows to the right-hand side, with the opposite sign."""
    if term.variable in INITIAL_VOLUMES:
        lp.add_input_terms(row_index, term.entity, -term.coefficient)
    elif term.variable == "hydro_inflow":
        sources = plan.inflow_inputs[plan.arrives_at(term.entity)]
        lp.add_input_terms(row_index, sources, -term.coefficient)
        _move_by_transit(lp, plan, row_index, term, block)


def _move_by_transit(lp: LpBuilder, plan: StagePlan, row_index: int, term: GenericTerm, block: int | None) -> None:
    """Move water that was released earlier and arrives now, as a flow."""
    arrives, numbers = plan.arrives_at(term.entity), plan.data.transit
    for target in distinct_values(numbers.target[arrives[numbers.target]]).tolist():
        first = plan.state_index.input_of(StateSlot(IN_TRANSIT, target, 1))
        for k in range(plan.num_blocks) if block is None else (block,):
            period = plan.period_of(k)
            flow = numbers.carried_arrival[target, period] / (HM3_PER_M3S_HOUR * plan.point_hours[period])
            lp.add_input_terms(row_index, first, -term.coefficient * flow)


def _add_slacks(lp: LpBuilder, plan: StagePlan, rows: Indices) -> Indices:
    """Add a column for each limit that may be violated; rows x 2, short and over."""
    slack_columns = np.full((len(rows), 2), ABSENT, np.int64)
    names: list[str] = []
    costs: list[float] = []
    for number, row in enumerate(plan.data.generic_rows):
        if row.slack_cost is None:
            continue
        hours = 1.0
        if row.slack_basis == "per_hour":
            hours = plan.total_hours if row.block is None else float(plan.hours[row.block])
        for side, (name, bound) in enumerate((("short", row.lower), ("over", row.upper))):
            if isfinite(bound):
                slack_columns[number, side] = len(names)
                names.append(f"generic_{number}_{name}")
                costs.append(row.slack_cost * hours)
    added = lp.add_labelled_columns(names, np.ones(len(names), bool), 0.0, np.inf, np.array(costs))
    slack_columns[slack_columns != ABSENT] = added
    lp.add_entries(rows[:, None], slack_columns, np.array([1.0, -1.0]))
    return slack_columns
