"""The data of one stage, with defaults and overrides applied: arrays in canonical entity order, by block where needed.

Shapes: N hydros, K blocks, G unit groups of all plants, J thermals, L lines, B buses, R non-controllable sources,
P pumping stations, C contracts. An entity that is out of service in the stage has limits of zero.
"""

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Flags, Floats, Indices
from cobre.core.generic_constraints import PenaltyBasis
from cobre.core.temporal import Stage
from cobre.records import dataclass

COMMITMENT, IN_TRANSIT = "commitment", "in_transit"  # kinds of state slots


@dataclass(frozen=True, slots=True)
class HydroNumbers:
    """Reservoirs and turbines; costs per hydro are those of this stage."""

    is_active: Flags  # N: between entry and exit
    is_filling: Flags  # N: between the start of filling and entry
    was_filled: Flags  # N: entered after a filling, so that the minimum storage is soft
    filling_target_hm3: Floats  # N: by the end of this stage; NaN when not filling
    declared_min_storage_hm3: Floats  # N: without overrides
    min_storage_hm3: Floats  # N
    max_storage_hm3: Floats
    water_withdrawal_m3s: Floats  # also while the plant is out of service
    min_outflow_m3s: Floats  # N x K
    max_outflow_m3s: Floats  # infinite without a limit
    min_turbined_m3s: Floats  # of the plant, in addition to those of its unit groups
    max_turbined_m3s: Floats
    min_generation_mw: Floats  # as above
    max_generation_mw: Floats
    min_diversion_m3s: Floats
    max_diversion_m3s: Floats
    min_spillage_m3s: Floats
    max_spillage_m3s: Floats
    productivity_mw_per_m3s: Floats  # N; NaN for plants with planes
    planes: tuple[Floats | None, ...]  # N: planes x (gamma_0 with kappa, gamma_v, gamma_q, gamma_s)
    has_evaporation: Flags  # N
    evaporation_k0: Floats  # m3/s
    evaporation_kv: Floats  # m3/s per hm3
    spillage_cost: Floats  # N, as the rest
    turbined_cost: Floats
    diversion_cost: Floats
    storage_violation_below_cost: Floats
    filling_target_violation_cost: Floats
    turbined_violation_below_cost: Floats
    outflow_violation_below_cost: Floats
    outflow_violation_above_cost: Floats
    generation_violation_below_cost: Floats
    evaporation_violation_pos_cost: Floats
    evaporation_violation_neg_cost: Floats
    water_withdrawal_violation_pos_cost: Floats
    water_withdrawal_violation_neg_cost: Floats
    inflow_nonnegativity_cost: Floats


@dataclass(frozen=True, slots=True)
class GroupNumbers:
    """Unit groups, those of a plant side by side."""

    min_turbined_m3s: Floats  # G x K
    max_turbined_m3s: Floats
    min_generation_mw: Floats
    max_generation_mw: Floats


@dataclass(frozen=True, slots=True)
class ThermalNumbers:
    """Limits and costs of thermal plants in a stage."""

    min_mw: Floats  # J x K
    max_mw: Floats
    cost: Floats  # $/MWh


@dataclass(frozen=True, slots=True)
class CommitmentNumbers:
    """Thermal power that is decided ahead; C commitments that some stage decides (`StateLayout.decided_of`)."""

    is_committed: Flags  # J: its generation in this stage was decided earlier
    is_decided: Flags  # C: by this stage
    is_carried: Flags  # C: decided earlier, and still to be delivered when the stage ends
    min_mw: Floats  # C: at delivery
    max_mw: Floats
    cost: Floats  # $ for one MW over all hours of the delivery, discounted to this stage
    is_after_study: Flags  # C: delivered then
    delivery_date: NDArray[np.datetime64]  # C: its first day; not a date where nothing is decided


@dataclass(frozen=True, slots=True)
class TransitNumbers:
    """Water in transit: A arcs with a travel time, P periods (chronological blocks, or the stage), C slots."""

    hydro: Indices  # A: the releasing plant
    target: Indices  # A: the receiving plant
    arrival_share: Floats  # A x P x P: share of a release of a period that arrives in each period of this stage
    carried_share: Floats  # A x P x C: share of a release in transit when the stage ends, by slot of the layout
    carried_arrival: Floats  # N x P: share of the water in transit that arrives in each period of this stage
    is_carried: Flags  # C: arrives within the study, or while a boundary policy values what arrives
    arrives_after_study: Flags  # A: some of this stage's release arrives after the study


@dataclass(frozen=True, slots=True)
class LineNumbers:
    """Capacities, exchange costs and losses of lines in a stage."""

    direct_mw: Floats  # L x K
    reverse_mw: Floats
    exchange_cost: Floats  # L
    loss_fraction: Floats  # L


@dataclass(frozen=True, slots=True)
class BusNumbers:
    """Loads, and the costs of deficit and excess."""

    deficit_segments: tuple[tuple[tuple[float, float], ...], ...]  # B: (depth in MW or infinity, cost)
    excess_cost: Floats  # B
    load_factor: Floats  # B x K
    load_mean_mw: Floats  # B
    load_std_mw: Floats


@dataclass(frozen=True, slots=True)
class SourceNumbers:
    """Availability and curtailment of non-controllable sources in a stage."""

    is_active: Flags  # R
    may_curtail: Flags
    available_mw: Floats
    curtailment_cost: Floats
    factor: Floats  # R x K
    mean: Floats  # R: mean share of the available power
    std: Floats


@dataclass(frozen=True, slots=True)
class PumpingNumbers:
    """Flow limits of pumping stations in a stage."""

    min_m3s: Floats  # P x K
    max_m3s: Floats


@dataclass(frozen=True, slots=True)
class ContractNumbers:
    """Limits and prices of energy contracts in a stage."""

    min_mw: Floats  # C x K
    max_mw: Floats
    price: Floats  # $/MWh; a negative price of an export is revenue


@dataclass(frozen=True, slots=True)
class GenericTerm:
    """coefficient * variable of an entity; `block` None: a variable of the stage, or the sum over blocks."""

    variable: str
    entity: int
    block: int | None
    bus: int | None
    coefficient: float


@dataclass(frozen=True, slots=True)
class GenericRow:
    """lower <= terms <= upper; `slack_cost` None: a hard constraint. `block` None: one row for the stage.

    slack_basis: whether the cost of a violation counts by the hour, or once.
    """

    constraint_id: int
    name: str
    block: int | None
    terms: tuple[GenericTerm, ...]
    lower: float
    upper: float
    slack_cost: float | None
    slack_basis: PenaltyBasis = "per_hour"


@dataclass(frozen=True, slots=True)
class StageData:
    """Everything about one stage that its LP needs."""

    stage: Stage
    hours: Floats  # K
    discount: float  # of the transition that leaves the stage
    hydro: HydroNumbers
    group: GroupNumbers
    thermal: ThermalNumbers
    line: LineNumbers
    bus: BusNumbers
    source: SourceNumbers
    pumping: PumpingNumbers
    contract: ContractNumbers
    commitment: CommitmentNumbers
    transit: TransitNumbers
    generic_rows: tuple[GenericRow, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """Connections between entities, the same in all stages: indices in canonical order, -1 for none."""

    downstream: Indices  # N
    diversion_target: Indices  # N
    group_hydro: Indices  # G
    group_bus: Indices
    group_share: Floats  # G: of the plant's turbines, as declared
    thermal_bus: Indices
    line_source: Indices
    line_target: Indices
    source_bus: Indices
    pumping_bus: Indices
    pumping_source: Indices  # hydro
    pumping_destination: Indices  # hydro
    contract_bus: Indices
    contract_sign: Floats  # +1 import, -1 export


@dataclass(frozen=True, slots=True)
class StateSlot:
    """An entry of the state that is known ahead, for the stage `distance` stages after the current one.

    kind: COMMITMENT of a thermal plant, MW, or water IN_TRANSIT to a hydro plant, hm3. entity: its index in canonical
    order.
    """

    kind: str
    entity: int
    distance: int


@dataclass(frozen=True, slots=True)
class StateLayout:
    """State variables besides storages and lagged inflows.

    decided: slots that some stage decides; they are LP columns of that stage, and rows carry them through the others.
    passed: slots that no stage decides. From one stage to the next a slot takes the value of the slot one stage
    farther ahead.
    """

    decided: tuple[StateSlot, ...] = ()
    passed: tuple[StateSlot, ...] = ()

    def decided_of(self, kind: str) -> tuple[StateSlot, ...]:
        """Return the decided slots of one kind, in the order of the layout."""
        return tuple(slot for slot in self.decided if slot.kind == kind)

    def has(self, kind: str) -> bool:
        """Return whether there is a slot of a kind."""
        return any(slot.kind == kind for slot in (*self.decided, *self.passed))


@dataclass(frozen=True, slots=True)
class ResolvedStudy:
    """The data of all stages in order, with the topology and the initial state."""

    topology: Topology
    layout: StateLayout
    initial_storage_hm3: Floats  # N, as given
    initial_decided: Floats  # decisions before the study, in the order of the layout
    initial_passed: Floats
    stages: tuple[StageData, ...]
