"""An overview of a case: counts, and entities with their main numbers, read-only. `cobre.Case` has all fields.

Costs are those of the entity, else those of penalties.json; overrides of single stages are not shown. Dates are ISO
dates.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from cobre.core import entities as declared
from cobre.core.case import Case
from cobre.core.entities import Penalties
from cobre.core.hydro import Hydro as DeclaredHydro
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class Bus:
    """A node of the network; `deficit_segments` have `depth_mw` (None: unlimited) and `cost_per_mwh`."""

    id: int
    name: str
    deficit_segments: list[dict[str, float | None]] = field(repr=False)
    excess_cost: float = field(repr=False)


@dataclass(frozen=True, slots=True)
class Line:
    """A transmission line between two buses, as `cobre.model` shows it."""

    id: int
    name: str
    source_bus_id: int
    target_bus_id: int
    direct_capacity_mw: float = field(repr=False)
    reverse_capacity_mw: float = field(repr=False)
    losses_percent: float = field(repr=False)
    exchange_cost: float = field(repr=False)


@dataclass(frozen=True, slots=True)
class Thermal:
    """A thermal plant, as `cobre.model` shows it."""

    id: int
    name: str
    bus_id: int
    min_generation_mw: float = field(repr=False)
    max_generation_mw: float = field(repr=False)
    cost_per_mwh: float = field(repr=False)


@dataclass(frozen=True, slots=True)
class Hydro:
    """A hydro plant; its productivity may differ by stage and is therefore not given here."""

    id: int
    name: str
    downstream_id: int | None = field(repr=False)
    min_storage_hm3: float = field(repr=False)
    max_storage_hm3: float = field(repr=False)
    min_turbined_m3s: float = field(repr=False)
    max_turbined_m3s: float = field(repr=False)
    productivity_mw_per_m3s: float | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class EnergyContract:
    """Power bought from or sold to another system."""

    id: int
    name: str
    operational_start_date: str = field(repr=False)
    bus_id: int = field(repr=False)
    contract_type: str = field(repr=False)
    entry_stage_id: int | None = field(repr=False)
    exit_stage_id: int | None = field(repr=False)
    price_per_mwh: float = field(repr=False)
    min_mw: float = field(repr=False)
    max_mw: float = field(repr=False)


@dataclass(frozen=True, slots=True)
class PumpingStation:
    """Lifts water from one reservoir into another."""

    id: int
    name: str
    operational_start_date: str = field(repr=False)
    bus_id: int = field(repr=False)
    source_hydro_id: int = field(repr=False)
    destination_hydro_id: int = field(repr=False)
    entry_stage_id: int | None = field(repr=False)
    exit_stage_id: int | None = field(repr=False)
    consumption_mw_per_m3s: float = field(repr=False)
    min_flow_m3s: float = field(repr=False)
    max_flow_m3s: float = field(repr=False)


@dataclass(frozen=True, slots=True)
class NonControllableSource:
    """A wind, solar or other non-controllable source, as `cobre.model` shows it."""

    id: int
    name: str
    operational_start_date: str = field(repr=False)
    bus_id: int = field(repr=False)
    entry_stage_id: int | None = field(repr=False)
    exit_stage_id: int | None = field(repr=False)
    max_generation_mw: float = field(repr=False)
    allow_curtailment: bool = field(repr=False)
    curtailment_cost: float = field(repr=False)


@dataclass(frozen=True, slots=True)
class System:
    """All entities of a case, each class in canonical order; stages before the study count as well."""

    n_buses: int
    n_lines: int
    n_hydros: int
    n_thermals: int
    n_stages: int
    buses: list[Bus] = field(repr=False)
    lines: list[Line] = field(repr=False)
    hydros: list[Hydro] = field(repr=False)
    thermals: list[Thermal] = field(repr=False)
    contracts: list[EnergyContract] = field(repr=False)
    pumping_stations: list[PumpingStation] = field(repr=False)
    non_controllable_sources: list[NonControllableSource] = field(repr=False)


def system_of(case: Case) -> System:
    """Return the overview of a case."""
    system, prices = case.system, case.penalties
    return System(
        n_buses=len(system.buses),
        n_lines=len(system.lines),
        n_hydros=len(system.hydros),
        n_thermals=len(system.thermals),
        n_stages=len(case.horizon.pre_study_stages) + len(case.horizon.stages),
        buses=[_bus(bus, prices) for bus in system.buses],
        lines=[_line(line, prices) for line in system.lines],
        hydros=[_hydro(hydro) for hydro in system.hydros],
        thermals=[_thermal(thermal) for thermal in system.thermals],
        contracts=[_contract(contract) for contract in system.energy_contracts],
        pumping_stations=[_station(station) for station in system.pumping_stations],
        non_controllable_sources=[_source(source, prices) for source in system.non_controllable_sources],
    )


def _bus(bus: declared.Bus, prices: Penalties) -> Bus:
    segments: Sequence[declared.DeficitSegment] = bus.deficit_segments or prices.bus.deficit_segments
    plain: list[dict[str, float | None]] = [
        {"depth_mw": segment.depth_mw, "cost_per_mwh": segment.cost} for segment in segments
    ]
    return Bus(bus.id, bus.name, plain, prices.bus.excess_cost)


def _line(line: declared.Line, prices: Penalties) -> Line:
    cost = prices.line.exchange_cost if line.exchange_cost is None else line.exchange_cost
    return Line(
        id=line.id,
        name=line.name,
        source_bus_id=line.source_bus_id,
        target_bus_id=line.target_bus_id,
        direct_capacity_mw=line.capacity.direct_mw,
        reverse_capacity_mw=line.capacity.reverse_mw,
        losses_percent=line.losses_percent,
        exchange_cost=cost,
    )


def _hydro(hydro: DeclaredHydro) -> Hydro:
    return Hydro(
        id=hydro.id,
        name=hydro.name,
        downstream_id=hydro.downstream_id,
        min_storage_hm3=hydro.reservoir.min_storage_hm3,
        max_storage_hm3=hydro.reservoir.max_storage_hm3,
        min_turbined_m3s=hydro.generation.min_turbined_m3s,
        max_turbined_m3s=hydro.generation.max_turbined_m3s,
    )


def _thermal(thermal: declared.Thermal) -> Thermal:
    limits = thermal.generation
    return Thermal(thermal.id, thermal.name, thermal.bus_id, limits.min_mw, limits.max_mw, thermal.cost_per_mwh)


def _contract(contract: declared.EnergyContract) -> EnergyContract:
    return EnergyContract(
        contract_type=contract.type,
        price_per_mwh=contract.price_per_mwh,
        min_mw=contract.limits.min_mw,
        max_mw=contract.limits.max_mw,
        **_common_fields(contract),
    )


def _station(station: declared.PumpingStation) -> PumpingStation:
    return PumpingStation(
        source_hydro_id=station.source_hydro_id,
        destination_hydro_id=station.destination_hydro_id,
        consumption_mw_per_m3s=station.consumption_mw_per_m3s,
        min_flow_m3s=station.flow.min_m3s,
        max_flow_m3s=station.flow.max_m3s,
        **_common_fields(station),
    )


def _source(source: declared.NonControllableSource, prices: Penalties) -> NonControllableSource:
    default = prices.non_controllable_source.curtailment_cost
    return NonControllableSource(
        max_generation_mw=source.max_generation_mw,
        allow_curtailment=source.allow_curtailment,
        curtailment_cost=default if source.curtailment_cost is None else source.curtailment_cost,
        **_common_fields(source),
    )


def _common_fields(
    entity: declared.EnergyContract | declared.PumpingStation | declared.NonControllableSource,
) -> dict[str, Any]:
    """Return the fields that contracts, pumping stations and non-controllable sources have in common."""
    return {
        "id": entity.id,
        "name": entity.name,
        "operational_start_date": entity.operational_start_date.isoformat(),
        "bus_id": entity.bus_id,
        "entry_stage_id": entity.entry_stage_id,
        "exit_stage_id": entity.exit_stage_id,
    }
