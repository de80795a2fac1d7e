"""Power: the balance of every bus and block, limits of hydro plants, planes of the production function."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from cobre.core.arrays import Flags, Indices
from cobre.records import dataclass
from cobre.sddp.lp.columns import Columns
from cobre.sddp.lp.lp_builder import ABSENT, LpBuilder
from cobre.sddp.lp.plan import StagePlan


@dataclass(frozen=True, slots=True)
class PowerRows:
    """Rows whose duals are results: the bus balances, for energy prices, B x K."""

    balance: Indices


def add_power_rows(lp: LpBuilder, plan: StagePlan, columns: Columns) -> PowerRows:
    """Add all rows of the bus balances and of power limits; loads enter the right-hand sides of the balances."""
    balance = lp.add_rows("power_balance", (plan.num_buses, plan.num_blocks), 0.0, 0.0)
    _supply(lp, plan, columns, balance)
    _network(lp, plan, columns, balance)
    _plant_limits(lp, plan, columns)
    _planes(lp, plan, columns)
    return PowerRows(balance)


def _supply(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    topology = plan.topology
    consumption = plan.pumping_consumption[:, None]
    lp.add_entries(balance[plan.pair_bus], columns.turbined, plan.pair_productivity[:, None])
    lp.add_entries(balance[plan.pair_bus], columns.generation, 1.0)
    lp.add_entries(balance[topology.thermal_bus], columns.thermal, 1.0)
    lp.add_entries(balance[topology.source_bus], columns.source, 1.0)
    lp.add_entries(balance[topology.contract_bus], columns.contract, topology.contract_sign[:, None])
    lp.add_entries(balance[topology.pumping_bus], columns.pumped, -consumption)
    lp.add_entries(balance[:, None, :], columns.deficit, 1.0)
    lp.add_entries(balance, columns.excess, -1.0)


def _network(lp: LpBuilder, plan: StagePlan, columns: Columns, balance: Indices) -> None:
    """Line flows in the balances: what leaves one bus arrives at the other less the losses."""
    topology = plan.topology
    kept = 1.0 - plan.data.line.loss_fraction[:, None]
    lp.add_entries(balance[topology.line_source], columns.direct, -1.0)
    lp.add_entries(balance[topology.line_target], columns.direct, kept)
    lp.add_entries(balance[topology.line_target], columns.reverse, -1.0)
    lp.add_entries(balance[topology.line_source], columns.reverse, kept)


def _plant_limits(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Minimums of groups with their slacks; what a plant's own limits demand beyond those of its groups.

    A slack of a group counts for its plant too, so that a shortfall is paid for once.
    """
    hydro, pair_shape = plan.data.hydro, (plan.num_pairs, plan.num_blocks)
    several = (plan.feeds_several_buses & plan.in_service)[:, None]
    short_flow, short_power = columns.group_turbined_below, columns.group_generation_below
    flow = lp.add_rows("min_group_turbined", pair_shape, plan.min_pair_turbined, np.inf, short_flow != ABSENT)
    power = lp.add_rows("min_group_generation", pair_shape, plan.min_pair_generation, np.inf, short_power != ABSENT)
    _add_flow(lp, columns, flow, short_flow)
    _add_power(lp, plan, columns, power, short_power)

    flow = _plant_rows(lp, plan, "min_turbined", hydro.min_turbined_m3s, np.inf, columns.turbined_below != ABSENT)
    power = _plant_rows(lp, plan, "min_generation", hydro.min_generation_mw, np.inf, columns.generation_below != ABSENT)
    lp.add_entries(flow, columns.turbined_below, 1.0)
    lp.add_entries(power, columns.generation_below, 1.0)
    _add_flow(lp, columns, flow[plan.pair_hydro], short_flow)
    _add_power(lp, plan, columns, power[plan.pair_hydro], short_power)

    flow = _plant_rows(lp, plan, "max_turbined", -np.inf, hydro.max_turbined_m3s, several)
    power = _plant_rows(lp, plan, "max_generation", -np.inf, hydro.max_generation_mw, several)
    _add_flow(lp, columns, flow[plan.pair_hydro])
    _add_power(lp, plan, columns, power[plan.pair_hydro])


def _plant_rows(lp: LpBuilder, plan: StagePlan, name: str, least: ArrayLike, most: ArrayLike, exists: Flags) -> Indices:
    return lp.add_rows(name, (plan.num_hydros, plan.num_blocks), least, most, exists)


def _add_flow(lp: LpBuilder, columns: Columns, rows: Indices, slack: Indices | None = None) -> None:
    """What the pairs turbine, with their slack."""
    lp.add_entries(rows, columns.turbined, 1.0)
    if slack is not None:
        lp.add_entries(rows, slack, 1.0)


def _add_power(lp: LpBuilder, plan: StagePlan, columns: Columns, rows: Indices, slack: Indices | None = None) -> None:
    """What the pairs generate, with their slack."""
    lp.add_entries(rows, columns.turbined, plan.pair_productivity[:, None])
    lp.add_entries(rows, columns.generation, 1.0)
    if slack is not None:
        lp.add_entries(rows, slack, 1.0)


def _planes(lp: LpBuilder, plan: StagePlan, columns: Columns) -> None:
    """Power is below every plane over mean volume, turbined flow and spillage.

    Machines at several buses share what volume and spillage contribute as they share the plant's turbines.
    """
    given = [(pair, plan.data.hydro.planes[hydro]) for pair, hydro in enumerate(plan.pair_hydro.tolist())]
    planes = {pair: of_plant for pair, of_plant in given if of_plant is not None}
    if not planes:
        return
    # Planes of all pairs, one below the other: at 150 plants, a twentieth of the time that rows plant by plant take.
    pair = np.repeat(np.array([*planes]), [len(of_plant) for of_plant in planes.values()])
    hydro, share = plan.pair_hydro[pair], plan.pair_share[pair][:, None]
    constant, by_volume, by_flow, by_spill = (part[:, None] for part in np.concatenate([*planes.values()]).T)
    exists = columns.generation[pair] != ABSENT
    rows = lp.add_labelled_rows(_plane_labels(pair.tobytes(), exists.tobytes()), exists, -np.inf, share * constant)
    lp.add_entries(rows, columns.generation[pair], 1.0)
    lp.add_entries(rows, columns.turbined[pair], -by_flow)
    lp.add_entries(rows, columns.spilled[hydro], -share * by_spill)
    _mean_volume(lp, plan, columns, rows, hydro, share * by_volume / 2.0)


@lru_cache(maxsize=32)
def _plane_labels(pairs: bytes, flags: bytes) -> tuple[str, ...]:
    """Names such as `plane_3[12,0]`: pair, plane of the pair, block. Stages are much alike, and share them."""
    pair = np.frombuffer(pairs, np.int64)
    exists = np.frombuffer(flags, bool).reshape(len(pair), -1)
    number = np.arange(len(pair)) - np.searchsorted(pair, pair)
    plane, block = np.nonzero(exists)
    found = zip(pair[plane].tolist(), number[plane].tolist(), block.tolist(), strict=True)
    return tuple(f"plane_{of}[{at},{k}]" for of, at, k in found)


def _mean_volume(
    lp: LpBuilder, plan: StagePlan, columns: Columns, rows: Indices, hydro: Indices, half: np.ndarray
) -> None:
    """Half of the first and half of the last volume: of the stage, or of the block."""
    last = columns.storage[hydro]
    lp.add_entries(rows, last, -half)
    if plan.is_chronological:
        lp.add_entries(rows[:, 1:], last[:, :-1], -half)
        lp.add_input_terms(rows[:, 0], hydro, half[:, 0])
    else:
        lp.add_input_terms(rows, hydro[:, None], half)
