"""The entities of a power system, as the files of `system/` declare them.

Field names are those of the case format. Every entity class is sorted by `(operational_start_date, id)`: that order,
and never the order of declaration, fixes the state vector, the noise vector and the rows of all results.
"""

from collections.abc import Sequence
from datetime import date
from typing import Literal, Protocol, TypeVar

from cobre.records import dataclass


class Entity(Protocol):
    """The fields that all entities have."""

    @property
    def id(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def operational_start_date(self) -> date: ...  # noqa: D102


class WithService(Protocol):
    """An entity with a stage of entry and one of exit; None: in service from the start, or to the end."""

    @property
    def entry_stage_id(self) -> int | None: ...  # noqa: D102
    @property
    def exit_stage_id(self) -> int | None: ...  # noqa: D102


AnyEntity = TypeVar("AnyEntity", bound=Entity)


def canonical_order(entities: Sequence[AnyEntity]) -> tuple[AnyEntity, ...]:
    """Sort entities by operational start date, then by id: the only order that results may depend on."""
    return tuple(sorted(entities, key=lambda entity: (entity.operational_start_date, entity.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeficitSegment:
    """A tier of unserved energy: `cost` in $/MWh; `depth_mw` None: unlimited."""

    depth_mw: float | None = None
    cost: float


@dataclass(frozen=True, slots=True)
class Bus:
    """A node of the network, where power balances."""

    id: int
    name: str
    operational_start_date: date
    deficit_segments: tuple[DeficitSegment, ...] | None = None


@dataclass(frozen=True, slots=True)
class LineCapacity:
    """Transfer limits of a line in each direction, MW."""

    direct_mw: float
    reverse_mw: float


@dataclass(frozen=True, slots=True)
class Line:
    """A connection between two buses; `direct` is from source to target."""

    id: int
    name: str
    operational_start_date: date
    source_bus_id: int
    target_bus_id: int
    capacity: LineCapacity
    exchange_cost: float | None = None
    losses_percent: float = 0.0
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """Minimum and maximum power of a thermal plant, MW."""

    min_mw: float
    max_mw: float


@dataclass(frozen=True, slots=True)
class AnticipatedConfig:
    """A plant whose dispatch is decided ahead of delivery."""

    lead_stages: int | None = None
    lead_time_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Thermal:
    """A thermal plant. `cost_per_mwh`: variable cost, $/MWh."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    cost_per_mwh: float
    generation: GenerationLimits
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None
    anticipated_config: AnticipatedConfig | None = None


@dataclass(frozen=True, slots=True)
class NonControllableSource:
    """Wind, solar, small plants: available power (MW) is used or curtailed."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    max_generation_mw: float
    curtailment_cost: float | None = None
    allow_curtailment: bool = True
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@dataclass(frozen=True, slots=True)
class PumpingFlow:
    """Minimum and maximum flow of a pumping station, m3/s."""

    min_m3s: float
    max_m3s: float


@dataclass(frozen=True, slots=True)
class PumpingStation:
    """Pumps water from one reservoir to another, using power."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    source_hydro_id: int
    destination_hydro_id: int
    consumption_mw_per_m3s: float
    flow: PumpingFlow
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


@dataclass(frozen=True, slots=True)
class ContractLimits:
    """Minimum and maximum power of a contract, MW."""

    min_mw: float
    max_mw: float


@dataclass(frozen=True, slots=True)
class EnergyContract:
    """Power bought from or sold to another system; a negative price on an export is revenue."""

    id: int
    name: str
    operational_start_date: date
    bus_id: int
    type: Literal["import", "export"]
    price_per_mwh: float
    limits: ContractLimits
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None


def is_in_service(entity: WithService, stage_id: int) -> bool:
    """Return whether an entity is in service in a stage: from its entry (included) to its exit (excluded).

    The operational start date has no influence."""
    entered = entity.entry_stage_id is None or entity.entry_stage_id <= stage_id
    return entered and (entity.exit_stage_id is None or stage_id < entity.exit_stage_id)


# The costs of penalties.json: the defaults for entities and stages without costs of their own.


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
