"""Tables of thermal plants, buses, lines, sources, contracts and pumping stations."""

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, Floats, Ints
from cobre.core.case import ABSENT_ID
from cobre.core.stage_data import COMMITMENT, StateSlot
from cobre.sddp.lp.build import StageLp
from cobre.sddp.simulation.tables import ColumnsByName, ResultTable, StageOutcome, StageRows, running_sum

THERMALS = ResultTable("thermals", ("thermal_id",), ("generation_mw", "generation_mwh", "generation_cost"))

BUSES = ResultTable(
    "buses",
    ("bus_id",),
    ("load_mw", "load_mwh", "deficit_mw", "deficit_mwh", "excess_mw", "excess_mwh", "spot_price"),
)

EXCHANGES = ResultTable(
    "exchanges",
    ("line_id",),
    (
        "direct_flow_mw",
        "reverse_flow_mw",
        "net_flow_mw",
        "net_flow_mwh",
        "losses_mw",
        "losses_mwh",
        "exchange_cost",
    ),
)

NON_CONTROLLABLES = ResultTable(
    "non_controllables",
    ("non_controllable_id",),
    ("generation_mw", "generation_mwh", "available_mw", "curtailment_mw", "curtailment_mwh", "curtailment_cost"),
)

CONTRACTS = ResultTable("contracts", ("contract_id",), ("power_mw", "energy_mwh", "price_per_mwh", "total_cost"))

PUMPING_STATIONS = ResultTable(
    "pumping_stations",
    ("pumping_station_id",),
    ("pumped_flow_m3s", "pumped_volume_hm3", "power_consumption_mw", "energy_consumption_mwh"),
)


def read_thermals(outcome: StageOutcome) -> ColumnsByName:
    """Return power, energy and generation cost of thermal plants by block."""
    plan = outcome.lp.plan
    power = outcome.values(outcome.lp.columns.thermal)
    energy = power * plan.hours
    return {"generation_mw": power, "generation_mwh": energy, "generation_cost": energy * plan.data.thermal.cost}


def read_buses(outcome: StageOutcome) -> ColumnsByName:
    """Return load, deficit, excess, and the marginal cost of energy, $/MWh."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    load = outcome.load[:, :, None] * plan.data.bus.load_factor
    deficit = running_sum(np.moveaxis(outcome.values(columns.deficit), 2, 3))
    excess = outcome.values(columns.excess)
    return {
        "load_mw": load,
        "load_mwh": load * plan.hours,
        "deficit_mw": deficit,
        "deficit_mwh": deficit * plan.hours,
        "excess_mw": excess,
        "excess_mwh": excess * plan.hours,
        "spot_price": outcome.duals(outcome.lp.power.balance) / plan.hours,
    }


def read_exchanges(outcome: StageOutcome) -> ColumnsByName:
    """Return flows as they enter a line, and losses as the LP counts them."""
    plan, columns, line = outcome.lp.plan, outcome.lp.columns, outcome.lp.plan.data.line
    direct, reverse = outcome.values(columns.direct), outcome.values(columns.reverse)
    net, both = direct - reverse, direct + reverse
    lost = both * line.loss_fraction[:, None]
    return {
        "direct_flow_mw": direct,
        "reverse_flow_mw": reverse,
        "net_flow_mw": net,
        "net_flow_mwh": net * plan.hours,
        "losses_mw": lost,
        "losses_mwh": lost * plan.hours,
        "exchange_cost": both * (line.exchange_cost[:, None] * plan.hours),
    }


def read_non_controllables(outcome: StageOutcome) -> ColumnsByName:
    """Return generation and availability of sources."""
    plan, source = outcome.lp.plan, outcome.lp.plan.data.source
    power = outcome.values(outcome.lp.columns.source)
    available = available_mw(outcome)
    curtailed = available - power
    return {
        "generation_mw": power,
        "generation_mwh": power * plan.hours,
        "available_mw": available,
        "curtailment_mw": curtailed,
        "curtailment_mwh": curtailed * plan.hours,
        "curtailment_cost": curtailed * (source.curtailment_cost[:, None] * plan.hours),
    }


def available_mw(outcome: StageOutcome) -> Floats:
    """Return S x R x K; 0 for sources that do not exist in the stage."""
    source = outcome.lp.plan.data.source
    available = np.where(source.is_active, source.available_mw, 0.0)[:, None] * source.factor
    return outcome.availability[:, :, None] * available


def read_contracts(outcome: StageOutcome) -> ColumnsByName:
    """Return power bought or sold; a negative cost is revenue."""
    plan = outcome.lp.plan
    power = outcome.values(outcome.lp.columns.contract)
    energy, price = power * plan.hours, plan.data.contract.price
    return {
        "power_mw": power,
        "energy_mwh": energy,
        "price_per_mwh": np.broadcast_to(price, power.shape),
        "total_cost": energy * price,
    }


def read_pumping_stations(outcome: StageOutcome) -> ColumnsByName:
    """Return pumped flow and power consumption of pumping stations by block."""
    plan = outcome.lp.plan
    flow = outcome.values(outcome.lp.columns.pumped)
    power = flow * plan.pumping_consumption[:, None]
    return {
        "pumped_flow_m3s": flow,
        "pumped_volume_hm3": flow * (HM3_PER_M3S_HOUR * plan.hours),
        "power_consumption_mw": power,
        "energy_consumption_mwh": power * plan.hours,
    }


# Thermal power that is decided ahead: what was committed, what is decided, what one more MW would be worth.

# Numbers that only some rows have: NaN elsewhere.
AHEAD = ("anticipated_committed_mw", "anticipated_decision_mw", "commitment_value_per_mw")
ANTICIPATED_THERMALS = ResultTable(THERMALS.name, THERMALS.ids, (*THERMALS.numbers, *AHEAD))
LANES = ResultTable("anticipated_lanes", ("thermal_id", "delivery_date"), ("deposited_decision_mw",))


def read_anticipated_thermals(outcome: StageOutcome) -> ColumnsByName:
    """Add deliveries of earlier decisions, and decisions for later stages, to the columns of all thermal plants."""
    plan = outcome.lp.plan
    is_committed = plan.data.commitment.is_committed
    columns = read_thermals(outcome)
    columns["generation_cost"] = np.where(is_committed[:, None], 0.0, columns["generation_cost"])
    by_plant = {
        "anticipated_committed_mw": _committed(outcome),
        "anticipated_decision_mw": _decided(outcome),
        "commitment_value_per_mw": np.where(is_committed, 0.0 - outcome.duals(outcome.lp.deliveries), np.nan),
    }
    shape = columns["generation_mw"].shape
    return columns | {name: np.broadcast_to(values[:, :, None], shape) for name, values in by_plant.items()}


def lane_rows(lp: StageLp, thermal_ids: Ints) -> StageRows:
    """Return a row for each decision that the thermals table has no column for: several at once, or after the study."""
    lanes = _lanes(lp)
    ids = [thermal_ids[lp.plan.layout.decided_of(COMMITMENT)[lane].entity] for lane in lanes]
    days = [int(lp.plan.data.commitment.delivery_date[lane].item().strftime("%Y%m%d")) for lane in lanes]
    block = np.full(len(lanes), ABSENT_ID, np.int32)
    return StageRows(
        LANES, {"block_id": block, "thermal_id": np.array(ids, np.int32), "delivery_date": np.array(days, np.int32)}
    )


def read_lanes(outcome: StageOutcome) -> ColumnsByName:
    """Return the power that is committed for later stages, MW, in the order of `lane_rows`."""
    return {"deposited_decision_mw": outcome.values(outcome.lp.columns.commitment[_lanes(outcome.lp)])}


def _lanes(lp: StageLp) -> list[int]:
    shown = _shown(lp)
    return [lane for lane in np.flatnonzero(lp.plan.data.commitment.is_decided).tolist() if lane not in shown]


def _shown(lp: StageLp) -> list[int]:
    """Return decisions within the study of plants that have a single one."""
    numbers, slots = lp.plan.data.commitment, lp.plan.layout.decided_of(COMMITMENT)
    inside = [lane for lane in np.flatnonzero(numbers.is_decided).tolist() if not numbers.is_after_study[lane]]
    owners = [slots[lane].entity for lane in inside]
    return [lane for lane, owner in zip(inside, owners, strict=True) if owners.count(owner) == 1]


def _committed(outcome: StageOutcome) -> Floats:
    """Return S x J: commitments of earlier stages for this one; 0 for plants that are dispatched normally."""
    plan = outcome.lp.plan
    values = np.full((outcome.scenarios, len(plan.data.commitment.is_committed)), np.nan)
    slots = (*plan.layout.decided, *plan.layout.passed)
    for plant in {slot.entity for slot in slots if slot.kind == COMMITMENT}:
        component = plan.state_index.component_of(StateSlot(COMMITMENT, plant, 1))
        values[:, plant] = outcome.state[:, component] if plan.data.commitment.is_committed[plant] else 0.0
    return values


def _decided(outcome: StageOutcome) -> Floats:
    plan = outcome.lp.plan
    values = np.full((outcome.scenarios, len(plan.data.commitment.is_committed)), np.nan)
    for lane in _shown(outcome.lp):
        values[:, plan.layout.decided_of(COMMITMENT)[lane].entity] = outcome.values(outcome.lp.columns.commitment[lane])
    return values
