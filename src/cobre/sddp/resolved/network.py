"""Everything that is not hydro: thermals, lines, buses, sources, stations and contracts, stage by stage."""

from collections.abc import Mapping

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.stage_data import (
    BusNumbers,
    ContractNumbers,
    LineNumbers,
    PumpingNumbers,
    SourceNumbers,
    ThermalNumbers,
)
from cobre.core.temporal import Stage
from cobre.sddp.resolved.declared import OverrideRows, ServiceTimes, numbers, positions_by_id, zero_unless


class ThermalResolver:
    """Limits and costs of thermal plants by stage."""

    def __init__(self, case: Case) -> None:
        self._plants = case.system.thermals
        order = positions_by_id(plant.id for plant in self._plants)
        self._bounds = OverrideRows(case.overrides.thermal_bounds, ("thermal_id",), order)
        self._service = ServiceTimes(self._plants)
        self._min = numbers(self._plants, lambda plant: plant.generation.min_mw)
        self._max = numbers(self._plants, lambda plant: plant.generation.max_mw)
        self._cost = numbers(self._plants, lambda plant: plant.cost_per_mwh)

    def resolve(self, stage: Stage) -> ThermalNumbers:
        """Return the numbers of all thermal plants in a stage."""
        is_active = self._service.at(stage.id)
        return ThermalNumbers(
            min_mw=self._bounds.by_block(stage, "min_generation_mw", self._min, is_active),
            max_mw=self._bounds.by_block(stage, "max_generation_mw", self._max, is_active),
            cost=self._bounds.by_block(stage, "cost_per_mwh", self._cost),
        )


class LineResolver:
    """Capacities and exchange costs of lines by stage."""

    def __init__(self, case: Case) -> None:
        self._lines = case.system.lines
        price = case.penalties.line.exchange_cost
        order = positions_by_id(line.id for line in self._lines)
        self._bounds = OverrideRows(case.overrides.line_bounds, ("line_id",), order)
        self._prices = OverrideRows(case.overrides.penalty_overrides_line, ("line_id",), order)
        self._service = ServiceTimes(self._lines)
        self._direct = numbers(self._lines, lambda line: line.capacity.direct_mw)
        self._reverse = numbers(self._lines, lambda line: line.capacity.reverse_mw)
        self._cost = numbers(self._lines, lambda line: price if line.exchange_cost is None else line.exchange_cost)
        self._loss = numbers(self._lines, lambda line: line.losses_percent / 100.0)

    def resolve(self, stage: Stage) -> LineNumbers:
        """Return the numbers of all lines in a stage."""
        is_active = self._service.at(stage.id)
        return LineNumbers(
            direct_mw=self._bounds.by_block(stage, "direct_mw", self._direct, is_active),
            reverse_mw=self._bounds.by_block(stage, "reverse_mw", self._reverse, is_active),
            exchange_cost=self._prices.by_stage(stage.id, "exchange_cost", self._cost),
            loss_fraction=self._loss,
        )


class BusResolver:
    """Loads, deficit segments and excess costs of buses by stage."""

    def __init__(self, case: Case) -> None:
        self._buses = case.system.buses
        order = positions_by_id(bus.id for bus in self._buses)
        self._penalties = case.penalties.bus
        self._prices = OverrideRows(case.overrides.penalty_overrides_bus, ("bus_id",), order)
        self._stats = OverrideRows(case.scenarios.load_seasonal_stats, ("bus_id",), order)
        self._factors = case.scenarios.load_factors
        self._segments = tuple(self._deficit_segments(position) for position in range(len(self._buses)))

    def _deficit_segments(self, position: int) -> tuple[tuple[float, float], ...]:
        own = self._buses[position].deficit_segments
        segments = self._penalties.deficit_segments if own is None else own
        return tuple((np.inf if part.depth_mw is None else part.depth_mw, part.cost) for part in segments)

    def resolve(self, stage: Stage) -> BusNumbers:
        """Return the numbers of all buses in a stage."""
        zeros = np.zeros(len(self._buses))
        excess = np.full(len(self._buses), self._penalties.excess_cost)
        return BusNumbers(
            deficit_segments=self._segments,
            excess_cost=self._prices.by_stage(stage.id, "excess_cost", excess),
            load_mean_mw=self._stats.by_stage(stage.id, "mean_mw", zeros),
            load_std_mw=self._stats.by_stage(stage.id, "std_mw", zeros),
            load_factor=block_factors([bus.id for bus in self._buses], stage, self._factors),
        )


class SourceResolver:
    """Availability and curtailment costs of non-controllable sources by stage."""

    def __init__(self, case: Case) -> None:
        self._sources = case.system.non_controllable_sources
        price = case.penalties.non_controllable_source.curtailment_cost
        order = positions_by_id(source.id for source in self._sources)
        self._bounds = OverrideRows(case.overrides.ncs_bounds, ("ncs_id",), order)
        self._prices = OverrideRows(case.overrides.penalty_overrides_ncs, ("ncs_id",), order)
        self._stats = OverrideRows(case.scenarios.non_controllable_stats, ("ncs_id",), order)
        self._factors = case.scenarios.non_controllable_factors
        self._service = ServiceTimes(self._sources)
        self._max = numbers(self._sources, lambda source: source.max_generation_mw)
        self._cost = numbers(
            self._sources, lambda source: price if source.curtailment_cost is None else source.curtailment_cost
        )
        self._may_curtail = np.array([source.allow_curtailment for source in self._sources], dtype=np.bool_)
        self._ids = [source.id for source in self._sources]

    def resolve(self, stage: Stage) -> SourceNumbers:
        """Return the numbers of all non-controllable sources in a stage."""
        is_active, count = self._service.at(stage.id), len(self._sources)
        return SourceNumbers(
            is_active=is_active,
            available_mw=zero_unless(is_active, self._bounds.by_stage(stage.id, "available_generation_mw", self._max)),
            may_curtail=self._may_curtail,
            curtailment_cost=self._prices.by_stage(stage.id, "curtailment_cost", self._cost),
            mean=self._stats.by_stage(stage.id, "mean", np.ones(count)),
            std=self._stats.by_stage(stage.id, "std", np.zeros(count)),
            factor=block_factors(self._ids, stage, self._factors),
        )


class PumpingResolver:
    """Flow limits of pumping stations by stage."""

    def __init__(self, case: Case) -> None:
        self._stations = case.system.pumping_stations
        order = positions_by_id(station.id for station in self._stations)
        self._bounds = OverrideRows(case.overrides.pumping_bounds, ("pumping_station_id",), order)
        self._service = ServiceTimes(self._stations)
        self._min = numbers(self._stations, lambda station: station.flow.min_m3s)
        self._max = numbers(self._stations, lambda station: station.flow.max_m3s)

    def resolve(self, stage: Stage) -> PumpingNumbers:
        """Return the numbers of all pumping stations in a stage."""
        is_active = self._service.at(stage.id)
        return PumpingNumbers(
            self._bounds.by_block(stage, "min_m3s", self._min, is_active),
            self._bounds.by_block(stage, "max_m3s", self._max, is_active),
        )


class ContractResolver:
    """Limits and prices of energy contracts by stage."""

    def __init__(self, case: Case) -> None:
        self._contracts = case.system.energy_contracts
        order = positions_by_id(contract.id for contract in self._contracts)
        self._bounds = OverrideRows(case.overrides.contract_bounds, ("contract_id",), order)
        self._service = ServiceTimes(self._contracts)
        self._min = numbers(self._contracts, lambda contract: contract.limits.min_mw)
        self._max = numbers(self._contracts, lambda contract: contract.limits.max_mw)
        self._price = numbers(self._contracts, lambda contract: contract.price_per_mwh)

    def resolve(self, stage: Stage) -> ContractNumbers:
        """Return the numbers of all contracts in a stage."""
        is_active = self._service.at(stage.id)
        return ContractNumbers(
            self._bounds.by_block(stage, "min_mw", self._min, is_active),
            self._bounds.by_block(stage, "max_mw", self._max, is_active),
            self._bounds.by_block(stage, "price_per_mwh", self._price),
        )


def block_factors(ids: list[int], stage: Stage, factors: Mapping[tuple[int, int], tuple[float, ...]]) -> Floats:
    """Return factors [entities, blocks]; 1 where none is given."""
    ones = (1.0,) * len(stage.blocks)
    rows = [factors.get((entity_id, stage.id), ones) for entity_id in ids]
    return np.array(rows, dtype=np.float64).reshape(len(ids), len(stage.blocks))
