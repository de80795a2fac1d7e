"""The costs of penalties.json: the defaults for entities and stages without costs of their own."""

from cobre.core.entities import DeficitSegment
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class BusPenalties:
    """Costs of a bus: tiers of unserved energy, and excess energy, $/MWh."""

    deficit_segments: tuple[DeficitSegment, ...]
    excess_cost: float


@dataclass(frozen=True, slots=True)
class LinePenalties:
    """A small cost of flow, $/MWh, which prevents circular flows."""

    exchange_cost: float


@dataclass(frozen=True, slots=True)
class HydroPenalties:
    """Costs of a hydro plant: $ per m3/s and hour, $/MWh for generation, $/hm3 for storage and filling."""

    spillage_cost: float
    turbined_cost: float
    diversion_cost: float
    storage_violation_below_cost: float
    filling_target_violation_cost: float
    turbined_violation_below_cost: float
    outflow_violation_below_cost: float
    outflow_violation_above_cost: float
    generation_violation_below_cost: float
    evaporation_violation_cost: float
    water_withdrawal_violation_cost: float
    water_withdrawal_violation_pos_cost: float | None = None
    water_withdrawal_violation_neg_cost: float | None = None
    evaporation_violation_pos_cost: float | None = None
    evaporation_violation_neg_cost: float | None = None
    inflow_nonnegativity_cost: float = 1000.0


@dataclass(frozen=True, slots=True)
class NonControllablePenalties:
    """Cost of curtailed energy, $/MWh."""

    curtailment_cost: float


@dataclass(frozen=True, slots=True)
class Penalties:
    """All of penalties.json: costs of violations and of regularising flows, by entity class."""

    bus: BusPenalties
    line: LinePenalties
    hydro: HydroPenalties
    non_controllable_source: NonControllablePenalties
