"""The decisions of a stage: one array of columns for each kind, by entity and block.

What cannot happen in a stage (a line that is not built, the slack of a limit that does not exist) has no column.
"""

import numpy as np

from cobre.core.arrays import Indices
from cobre.records import dataclass
from cobre.sddp.lp.lp_builder import LpBuilder
from cobre.sddp.lp.plan import StagePlan


@dataclass(frozen=True, slots=True)
class Columns:
    """Indices; ABSENT if a stage has no such decision. Shapes: N hydros, K blocks, F pairs of plant and bus."""

    storage: Indices  # N x storage points: the end of the stage, or of every block when blocks are chronological
    future_cost: Indices
    turbined: Indices  # F x K
    generation: Indices  # F x K, plants whose power is limited by planes
    spilled: Indices  # N x K
    diverted: Indices
    thermal: Indices
    direct: Indices
    reverse: Indices
    deficit: Indices  # B x segments x K
    excess: Indices
    source: Indices
    available: Indices  # available power, where a generic constraint uses curtailment
    pumped: Indices
    contract: Indices
    inflow_slack: Indices  # N
    evaporated: Indices  # N x storage points, m3/s
    evaporation_less: Indices
    evaporation_more: Indices
    withdrawal_less: Indices
    withdrawal_more: Indices
    outflow_below: Indices  # N x K
    outflow_above: Indices
    turbined_below: Indices  # only if a plant must keep more than its groups together
    generation_below: Indices
    group_turbined_below: Indices  # F x K
    group_generation_below: Indices
    storage_below: Indices  # N: soft minimum of plants that were filled, or that a dry period keeps below it
    filling_below: Indices  # N: short of the target of a filling
    commitment: Indices  # thermal power for later stages, by the layout of the state
    in_transit: Indices  # water for later stages, as above


def add_columns(lp: LpBuilder, plan: StagePlan) -> Columns:
    """Add all decision variables; their order is fixed."""
    return Columns(
        **_water(lp, plan),
        **_power(lp, plan),
        **_stage_slacks(lp, plan),
        **_block_slacks(lp, plan),
        **_filling(lp, plan),
        **_commitments(lp, plan),
        **_in_transit(lp, plan),
    )


def _water(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    data, hours = plan.data, plan.hours
    n, k, f = plan.num_hydros, plan.num_blocks, plan.num_pairs
    points = plan.storage_points
    hydro = data.hydro
    runs = plan.in_service[:, None]
    high = np.where(plan.is_absent, np.inf, hydro.max_storage_hm3)[:, None]
    low = np.where(plan.is_absent, -np.inf, plan.lowest_storage_hm3)[:, None]
    turbined_cost = hydro.turbined_cost[plan.pair_hydro][:, None] * hours
    can_divert = runs & (hydro.max_diversion_m3s > 0)
    return {
        "storage": lp.add_columns("storage", (n, points), low, high, 0.0),
        "future_cost": lp.add_columns(
            "future_cost", (), plan.future_cost_floor, plan.future_cost_ceiling, plan.discount
        ),
        "turbined": lp.add_columns(
            "turbined", (f, k), 0.0, plan.max_pair_turbined, turbined_cost, plan.max_pair_turbined > 0
        ),
        "generation": lp.add_columns(
            "generation",
            (f, k),
            0.0,
            plan.max_pair_generation,
            0.0,
            # Planes limit what is spilled, too: by the rules of format 0.19 also where nothing can be generated.
            plan.is_plane_pair[:, None] & (plan.options.keeps_planes_at_rest | (plan.max_pair_generation > 0)),
        ),
        "spilled": lp.add_columns(
            "spilled",
            (n, k),
            hydro.min_spillage_m3s,
            hydro.max_spillage_m3s,
            hydro.spillage_cost[:, None] * hours,
            plan.has_reservoir[:, None],
        ),
        "diverted": lp.add_columns(
            "diverted",
            (n, k),
            hydro.min_diversion_m3s,
            hydro.max_diversion_m3s,
            hydro.diversion_cost[:, None] * hours,
            can_divert,
        ),
    }


def _power(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    data, hours, k = plan.data, plan.hours, plan.num_blocks
    thermal, line, bus, source = data.thermal, data.line, data.bus, data.source
    pumping, contract = data.pumping, data.contract
    segments = plan.deficit_depth.shape[1]
    flow_cost = line.exchange_cost[:, None] * hours
    reward = np.broadcast_to(-source.curtailment_cost[:, None] * hours, (len(source.is_active), k))
    return {
        "thermal": lp.add_columns(
            "thermal",
            thermal.max_mw.shape,
            thermal.min_mw,
            thermal.max_mw,
            # Committed power was paid for in the stage that decided it.
            np.where(data.commitment.is_committed[:, None], 0.0, thermal.cost * hours),
            (thermal.max_mw > 0) | (thermal.min_mw != 0),
        ),
        "direct": lp.add_columns("direct", line.direct_mw.shape, 0.0, line.direct_mw, flow_cost, line.direct_mw > 0),
        "reverse": lp.add_columns(
            "reverse", line.reverse_mw.shape, 0.0, line.reverse_mw, flow_cost, line.reverse_mw > 0
        ),
        "deficit": lp.add_columns(
            "deficit",
            (plan.num_buses, segments, k),
            0.0,
            plan.deficit_depth[:, :, None],
            plan.deficit_cost[:, :, None] * hours,
            plan.deficit_depth[:, :, None] > 0,
        ),
        "excess": lp.add_columns("excess", (plan.num_buses, k), 0.0, np.inf, bus.excess_cost[:, None] * hours),
        "source": lp.add_columns(
            "source", reward.shape, 0.0, source.available_mw[:, None] * source.factor, reward, source.is_active[:, None]
        ),
        "available": lp.add_columns(
            "available",
            reward.shape,
            0.0,
            source.available_mw[:, None] * source.factor,
            0.0,
            (source.is_active & plan.constrains_curtailment)[:, None],
        ),
        "pumped": lp.add_columns(
            "pumped",
            pumping.max_m3s.shape,
            pumping.min_m3s,
            pumping.max_m3s,
            0.0,
            (pumping.max_m3s > 0) | (pumping.min_m3s != 0),
        ),
        "contract": lp.add_columns(
            "contract",
            contract.max_mw.shape,
            contract.min_mw,
            contract.max_mw,
            contract.price * hours,
            (contract.max_mw > 0) | (contract.min_mw != 0),
        ),
    }


def _stage_slacks(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    """Add slacks and flows that hold for the stage as a whole, or from one volume to the next."""
    hydro, total, n = plan.data.hydro, plan.total_hours, plan.num_hydros
    # A withdrawal must not change its sign: its shortfall is at most the withdrawal itself.
    withdrawn = np.where(plan.has_reservoir, hydro.water_withdrawal_m3s, 0.0)
    max_less = np.where(withdrawn > 0, withdrawn, np.inf)
    max_more = np.where(withdrawn < 0, -withdrawn, np.inf)
    price = 0.0 if plan.options.fixes_inflow_slack else hydro.inflow_nonnegativity_cost * total
    return {
        "inflow_slack": lp.add_columns("inflow_slack", (n,), 0.0, np.inf, price, plan.has_inflow_slack),
        **_evaporation(lp, plan),
        "withdrawal_less": lp.add_columns(
            "withdrawal_less", (n,), 0.0, max_less, hydro.water_withdrawal_violation_neg_cost * total, withdrawn != 0
        ),
        "withdrawal_more": lp.add_columns(
            "withdrawal_more", (n,), 0.0, max_more, hydro.water_withdrawal_violation_pos_cost * total, withdrawn != 0
        ),
    }


def _evaporation(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    """Add flows in both directions, because rain may exceed evaporation."""
    hydro = plan.data.hydro
    shape = (plan.num_hydros, plan.storage_points)
    exists = (hydro.has_evaporation & plan.has_reservoir)[:, None]
    limit = 2.0 * np.abs(hydro.evaporation_k0 + hydro.evaporation_kv * hydro.max_storage_hm3)[:, None]
    less = hydro.evaporation_violation_neg_cost[:, None] * plan.point_hours
    more = hydro.evaporation_violation_pos_cost[:, None] * plan.point_hours
    return {
        "evaporated": lp.add_columns("evaporated", shape, -limit, limit, 0.0, exists),
        "evaporation_less": lp.add_columns("evaporation_less", shape, 0.0, np.inf, less, exists),
        "evaporation_more": lp.add_columns("evaporation_more", shape, 0.0, np.inf, more, exists),
    }


def _block_slacks(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    """Add slacks of limits that hold in every block."""
    hydro, hours = plan.data.hydro, plan.hours
    is_there = plan.has_reservoir[:, None]

    def slack(name: str, cost: np.ndarray[tuple[int], np.dtype[np.float64]], exists: np.ndarray) -> Indices:
        return lp.add_columns(name, exists.shape, 0.0, np.inf, cost[:, None] * hours, exists)

    owner = plan.pair_hydro
    return {
        "outflow_below": slack("outflow_below", hydro.outflow_violation_below_cost, hydro.min_outflow_m3s > 0),
        "outflow_above": slack(
            "outflow_above", hydro.outflow_violation_above_cost, is_there & np.isfinite(hydro.max_outflow_m3s)
        ),
        "turbined_below": slack("turbined_below", hydro.turbined_violation_below_cost, plan.limits_turbined),
        "generation_below": slack("generation_below", hydro.generation_violation_below_cost, plan.limits_generation),
        "group_turbined_below": slack(
            "group_turbined_below",
            hydro.turbined_violation_below_cost[owner],
            plan.limits_pair_turbined,
        ),
        "group_generation_below": slack(
            "group_generation_below",
            hydro.generation_violation_below_cost[owner],
            plan.limits_pair_generation,
        ),
    }


def _filling(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    hydro, n = plan.data.hydro, plan.num_hydros
    return {
        "storage_below": lp.add_columns(
            "storage_below", (n,), 0.0, np.inf, hydro.storage_violation_below_cost, plan.has_soft_minimum
        ),
        "filling_below": lp.add_columns(
            "filling_below", (n,), 0.0, np.inf, hydro.filling_target_violation_cost, plan.has_filling_target
        ),
    }


def _commitments(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    """Add commitments: decided ones have the limits of their delivery, carried ones a row that fixes them, others 0."""
    numbers = plan.data.commitment
    low = np.where(numbers.is_carried, -np.inf, numbers.min_mw)
    high = np.where(numbers.is_carried, np.inf, numbers.max_mw)
    return {"commitment": lp.add_columns("commitment", low.shape, low, high, numbers.cost)}


def _in_transit(lp: LpBuilder, plan: StagePlan) -> dict[str, Indices]:
    """Add volumes in transit, fixed by their rows; water that arrives when nothing values it is not counted."""
    is_carried = plan.data.transit.is_carried
    limit = np.where(is_carried, np.inf, 0.0)
    return {"in_transit": lp.add_columns("in_transit", limit.shape, -limit, limit, 0.0)}
