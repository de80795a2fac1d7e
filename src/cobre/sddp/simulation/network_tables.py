"""Thermal plants, buses, lines, sources, contracts and pumping stations."""

from collections.abc import Callable, Iterable

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.units import HM3_PER_M3S_HOUR
from cobre.sddp.simulation.outcome import StageOutcome, running_sum
from cobre.sddp.simulation.tables import ResultTable

# From the outcome of a stage to one array, S x entities x K, for each number of a table.
Reader = Callable[[StageOutcome], Iterable[Floats]]

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


def read_thermals(outcome: StageOutcome) -> tuple[Floats, ...]:
    """Power, energy and generation cost of thermal plants by block."""
    plan = outcome.lp.plan
    power = outcome.values(outcome.lp.columns.thermal)
    energy = power * plan.hours
    return power, energy, energy * plan.data.thermal.cost


def read_buses(outcome: StageOutcome) -> tuple[Floats, ...]:
    """Load, what is not served or too much, and what one more MWh would cost."""
    plan, columns = outcome.lp.plan, outcome.lp.columns
    load = outcome.load[:, :, None] * plan.data.bus.load_factor
    deficit = running_sum(np.moveaxis(outcome.values(columns.deficit), 2, 3))
    excess = outcome.values(columns.excess)
    price = outcome.duals(outcome.lp.power.balance) / plan.hours
    return load, load * plan.hours, deficit, deficit * plan.hours, excess, excess * plan.hours, price


def read_exchanges(outcome: StageOutcome) -> tuple[Floats, ...]:
    """Flows as they enter a line; losses as the LP counts them."""
    plan, columns, line = outcome.lp.plan, outcome.lp.columns, outcome.lp.plan.data.line
    direct, reverse = outcome.values(columns.direct), outcome.values(columns.reverse)
    net, both = direct - reverse, direct + reverse
    lost = both * line.loss_fraction[:, None]
    cost = both * (line.exchange_cost[:, None] * plan.hours)
    return direct, reverse, net, net * plan.hours, lost, lost * plan.hours, cost


def read_non_controllables(outcome: StageOutcome) -> tuple[Floats, ...]:
    """What is generated of what is available."""
    plan, source = outcome.lp.plan, outcome.lp.plan.data.source
    power = outcome.values(outcome.lp.columns.source)
    available = available_mw(outcome)
    curtailed = available - power
    cost = curtailed * (source.curtailment_cost[:, None] * plan.hours)
    return power, power * plan.hours, available, curtailed, curtailed * plan.hours, cost


def available_mw(outcome: StageOutcome) -> Floats:
    """S x R x K; 0 for sources that are not there."""
    source = outcome.lp.plan.data.source
    most = np.where(source.is_active, source.available_mw, 0.0)[:, None] * source.factor
    return outcome.availability[:, :, None] * most


def read_contracts(outcome: StageOutcome) -> tuple[Floats, ...]:
    """Power bought or sold; a negative cost is revenue."""
    plan = outcome.lp.plan
    power = outcome.values(outcome.lp.columns.contract)
    energy, price = power * plan.hours, plan.data.contract.price
    return power, energy, np.broadcast_to(price, power.shape), energy * price


def read_pumping_stations(outcome: StageOutcome) -> tuple[Floats, ...]:
    """Pumped flow and power consumption of pumping stations by block."""
    plan = outcome.lp.plan
    flow = outcome.values(outcome.lp.columns.pumped)
    power = flow * plan.pumping_consumption[:, None]
    return flow, flow * (HM3_PER_M3S_HOUR * plan.hours), power, power * plan.hours
