"""Hydro plants and their unit groups, stage by stage."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import repeat
from math import fsum

import numpy as np

from cobre.core.arrays import HM3_PER_M3S_HOUR, Flags, Floats, distinct_values, runs, sum_in_order
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.entities import is_in_service
from cobre.core.hydro import FphaConfig, Hydro, ProductionChoice, UnitGroup
from cobre.core.stage_data import GroupNumbers, HydroNumbers, Topology
from cobre.core.temporal import Stage
from cobre.sddp.hydro_models.energy_productivity import (
    EQUIVALENT,
    NoProductivityError,
    ProductivityTable,
    reference_volume_hm3,
)
from cobre.sddp.hydro_models.fpha_fitting import Fit, fit_production
from cobre.sddp.hydro_models.production_function import ProductionFunction, tailrace_families
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry, evaporation_line, geometry_by_hydro, hours_of_month
from cobre.sddp.resolved.declared import (
    OverrideRows,
    ServiceTimes,
    indices,
    numbers,
    positions_by_id,
)

# Prices of hydro plants: penalties.json, then the plant's own, then those of the stage.

PLAIN = (
    "spillage_cost",
    "turbined_cost",
    "diversion_cost",
    "storage_violation_below_cost",
    "filling_target_violation_cost",
    "turbined_violation_below_cost",
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "generation_violation_below_cost",
    "inflow_nonnegativity_cost",
)

# Prices with a direction, and the price of both directions that holds where none is given.
DIRECTED: Mapping[str, str] = {
    "evaporation_violation_pos_cost": "evaporation_violation_cost",
    "evaporation_violation_neg_cost": "evaporation_violation_cost",
    "water_withdrawal_violation_pos_cost": "water_withdrawal_violation_cost",
    "water_withdrawal_violation_neg_cost": "water_withdrawal_violation_cost",
}


class HydroCostResolver:
    """Costs and penalties of hydro plants by stage, from declarations and override tables."""

    def __init__(self, case: Case) -> None:
        hydros = case.system.hydros
        order = positions_by_id(hydro.id for hydro in hydros)
        self._prices = OverrideRows(case.overrides.penalty_overrides_hydro, ("hydro_id",), order)
        self._shared = asdict(case.penalties.hydro)
        self._own = [asdict(hydro.penalties) if hydro.penalties else {} for hydro in hydros]
        self._plain = {name: self._declared(name) for name in PLAIN}
        self._both = {name: self._of_both_directions(name, both) for name, both in DIRECTED.items()}

    def resolve(self, stage_id: int) -> dict[str, Floats]:
        """Return every price of every plant, by name."""
        plain = {name: self._prices.by_stage(stage_id, name, declared) for name, declared in self._plain.items()}
        return plain | {name: self._directed(stage_id, name, both) for name, both in DIRECTED.items()}

    def _declared(self, name: str) -> Floats:
        values = [own.get(name) for own in self._own]
        return np.array([self._shared[name] if value is None else value for value in values], dtype=np.float64)

    def _directed(self, stage_id: int, name: str, both: str) -> Floats:
        """Apply the nearest price.

        A price for both directions at the stage or plant takes precedence over a price for one direction from a more
        general level.
        """
        return self._prices.by_stage(stage_id, name, self._prices.by_stage(stage_id, both, self._both[name]))

    def _of_both_directions(self, name: str, both: str) -> Floats:
        own = np.array([_or_nan(prices.get(both)) for prices in self._own], dtype=np.float64)
        return np.where(np.isnan(own), self._shared_or(name, both), own)

    def _shared_or(self, name: str, both: str) -> Floats:
        shared = self._shared[name]
        return np.full(len(self._own), self._shared[both] if shared is None else shared, dtype=np.float64)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


# Plants whose dead volume is filled for the first time.


class FillingPlan:
    """Stages in which plants fill, and their target volumes.

    A plant fills from the start of its filling until its entry. At the end of a stage it should hold what the least
    rate, over the stages that are left, would raise to the dead volume.
    """

    def __init__(self, case: Case, bounds: OverrideRows) -> None:
        self._hydros = case.system.hydros
        self._stages = case.horizon.stages
        self._bounds = bounds
        self._filled = [at for at, hydro in enumerate(self._hydros) if hydro.filling is not None]  # few of any system

    def is_filling(self, stage_id: int) -> Flags:
        """Return by plant (N) whether its dead volume is being filled in a stage."""
        return self._flags(position for position in self._filled if _fills(self._hydros[position], stage_id))

    def was_filled(self, stage_id: int) -> Flags:
        """Return by plant (N) whether it is in service and was filled before."""
        return self._flags(position for position in self._filled if _was_filled(self._hydros[position], stage_id))

    def target_hm3(self, stage_id: int) -> Floats:
        """Return by plant (N) the volume to reach by the end of a stage, hm3; NaN for plants that are not filling."""
        targets = np.full(len(self._hydros), np.nan)
        for position in self._filled:
            targets[position] = self._target(position, stage_id)
        return targets

    def _flags(self, positions: Iterable[int]) -> Flags:
        flags = np.zeros(len(self._hydros), np.bool_)
        flags[list(positions)] = True
        return flags

    def _target(self, position: int, stage_id: int) -> float:
        hydro = self._hydros[position]
        if not _fills(hydro, stage_id):
            return float("nan")
        later = [stage for stage in self._stages if stage.id > stage_id and _fills(hydro, stage.id)]
        last_id = later[-1].id if later else stage_id
        dead_hm3 = self._stage_value(position, last_id, "min_storage_hm3", hydro.reservoir.min_storage_hm3)
        still_hm3 = sum_in_order(HM3_PER_M3S_HOUR * stage.hours * self._rate(position, stage.id) for stage in later)
        return max(0.0, dead_hm3 - still_hm3)

    def _rate(self, position: int, stage_id: int) -> float:
        filling = self._hydros[position].filling
        declared = filling.filling_min_rate_m3s if filling else 0.0
        return self._stage_value(position, stage_id, "filling_min_rate_m3s", declared)

    def _stage_value(self, position: int, stage_id: int, name: str, declared: float) -> float:
        values = numbers(self._hydros, lambda _: declared)
        return float(self._bounds.by_stage(stage_id, name, values)[position])


def _fills(hydro: Hydro, stage_id: int) -> bool:
    if hydro.filling is None or hydro.entry_stage_id is None:
        return False
    return hydro.filling.start_stage_id <= stage_id < hydro.entry_stage_id


def _was_filled(hydro: Hydro, stage_id: int) -> bool:
    if hydro.filling is None or hydro.entry_stage_id is None or stage_id < hydro.entry_stage_id:
        return False
    return hydro.exit_stage_id is None or stage_id < hydro.exit_stage_id


# How much power a plant makes of its water in a stage: one rate, or planes.

PRECOMPUTED = FphaConfig("precomputed")


class ProductionResolver:
    """Productivities and planes, plant by plant: most plants have one model for all stages."""

    def __init__(self, case: Case, geometry: Mapping[int, ReservoirGeometry]) -> None:
        self._hydros = case.system.hydros
        self._stages = case.horizon.stages
        self._models = case.production
        self._geometry = geometry
        self._families = tailrace_families(case.production.tailrace_curves)
        self._rules = case.format_version
        self._history = case.scenarios.inflow_history
        self._table = ProductivityTable(case.production.energy_productivity)
        self._by_id = {hydro.id: hydro for hydro in self._hydros}
        self._fitted: dict[tuple[int, FphaConfig], dict[float | None, Fit]] = {}  # by level downstream
        self._chosen: dict[int, list[tuple[ProductionChoice, Sequence[Stage]]]] = {}

    @cached_property
    def _mean_inflow_m3s(self) -> Mapping[int, float]:
        """By hydro id; only for fitted planes."""
        return _mean_inflows(self._history)

    @cached_property
    def productivity(self) -> Mapping[int, Floats]:
        """MW per m3/s by stage id; NaN for plants with planes, 0 for plants that are out of service."""
        rows = {stage.id: np.zeros(len(self._hydros)) for stage in self._stages}
        for position, hydro in enumerate(self._hydros):
            for choice, stages in self._choices(hydro):
                for stage, value in zip(stages, self._productivities(hydro, choice, stages), strict=True):
                    rows[stage.id][position] = value
        return rows

    @cached_property
    def planes(self) -> Mapping[int, Sequence[Floats | None]]:
        """Rows of gamma_0 (with kappa), gamma_v, gamma_q, gamma_s by stage id; None without planes."""
        rows: dict[int, list[Floats | None]] = {stage.id: [None] * len(self._hydros) for stage in self._stages}
        for position, hydro in enumerate(self._hydros):
            for choice, stages in self._choices(hydro):
                if choice.model == "fpha" and (choice.fpha_config or PRECOMPUTED).source == "precomputed":
                    for stage in stages:
                        rows[stage.id][position] = _given_planes(self._models.hyperplanes, hydro, stage)
            for fit, stages in self.fits(hydro):
                for stage in stages:
                    rows[stage.id][position] = fit.planes
        return rows

    def fits(self, hydro: Hydro) -> Iterator[tuple[Fit, Sequence[Stage]]]:
        """Yield planes that are fitted to the geometry of a plant, with their grid and their stages."""
        for choice, stages in self._choices(hydro):
            config = choice.fpha_config or PRECOMPUTED
            if choice.model == "fpha" and config.source != "precomputed":
                fitted = self._fitted.setdefault((hydro.id, config), {})
                for level_m, of_level in self._downstream_levels_m(hydro, stages):
                    if level_m not in fitted:
                        fitted[level_m] = self._fit_to(hydro, config, level_m)
                    yield fitted[level_m], of_level

    def _choices(self, hydro: Hydro) -> list[tuple[ProductionChoice, Sequence[Stage]]]:
        """Return the choices for a plant while it is in service."""
        if hydro.id not in self._chosen:
            is_always_there = hydro.entry_stage_id is None and hydro.exit_stage_id is None
            serving = [stage for stage in self._stages if is_always_there or is_in_service(hydro, stage.id)]
            self._chosen[hydro.id] = self._models.stages_by_choice(hydro, serving)
        return self._chosen[hydro.id]

    def _productivities(self, hydro: Hydro, choice: ProductionChoice, stages: Sequence[Stage]) -> Iterable[float]:
        if choice.model == "fpha":
            return repeat(float("nan"), len(stages))
        if choice.productivity_mw_per_m3s is not None:
            return repeat(choice.productivity_mw_per_m3s, len(stages))
        return [self._tabulated(hydro, stage) for stage in stages]

    def _tabulated(self, hydro: Hydro, stage: Stage) -> float:
        value = self._table.value(EQUIVALENT, hydro.id, stage.id)
        if value is None:
            raise NoProductivityError(
                f"no productivity is given for hydro {hydro.id} ({hydro.name}) in stage {stage.id}"
            )
        return value

    def _fit_to(self, hydro: Hydro, config: FphaConfig, level_m: float | None) -> Fit:
        families = self._families.get(hydro.id)
        tailrace = None if families is None else families.at(level_m)
        mean_inflow_m3s = self._mean_inflow_m3s.get(hydro.id)
        function = ProductionFunction(hydro, self._geometry[hydro.id], tailrace, mean_inflow_m3s)
        return fit_production(function, config, self._models.plane_reduction, self._rules)

    def _downstream_levels_m(
        self, hydro: Hydro, stages: Sequence[Stage]
    ) -> Iterator[tuple[float | None, Sequence[Stage]]]:
        """Yield levels of the next reservoir downstream, at its reference volumes, with the stages in which they hold.

        None if there is none, or if the tailrace does not depend on it.
        """
        below = None if hydro.downstream_id is None else self._by_id.get(hydro.downstream_id)
        if hydro.id not in self._families or below is None or below.id not in self._geometry:
            yield None, stages
            return
        for choice, of_choice in self._models.stages_by_choice(below, stages):
            yield self._geometry[below.id].height_at(reference_volume_hm3(choice, below)), of_choice


def _mean_inflows(history: Table | None) -> dict[int, float]:
    """Return mean inflows by hydro id from inflow_history.parquet, m3/s; every row counts once, whatever its length."""
    if history is None:
        return {}
    order = np.argsort(history["hydro_id"], kind="stable")
    ids = history["hydro_id"][order]
    distinct = distinct_values(ids)
    parts = runs(history["value_m3s"][order], ids.searchsorted(distinct).tolist())
    return {id_: fsum(part.tolist()) / len(part) for id_, part in zip(distinct.tolist(), parts, strict=True)}


def _given_planes(table: Table | None, hydro: Hydro, stage: Stage) -> Floats:
    """Return planes of the stage, or those of all stages."""
    if table is None:
        raise NoProductivityError(f"no planes are given for hydro {hydro.id} ({hydro.name})")
    for stage_id in (stage.id, ABSENT_ID):
        rows = (table["hydro_id"] == hydro.id) & (table["stage_id"] == stage_id)
        if rows.any():
            kappa = np.where(np.isnan(table["kappa"][rows]), 1.0, table["kappa"][rows])
            slopes = [table[name][rows] for name in ("gamma_v", "gamma_q", "gamma_s")]
            return np.column_stack([table["gamma_0"][rows] * kappa, *slopes])
    raise NoProductivityError(f"no planes are given for hydro {hydro.id} ({hydro.name}) in stage {stage.id}")


# By the rules of format 0.19, what must flow or be generated is charged in every stage, also before a plant enters and
# while it fills. It is a constant cost.
ALWAYS = ("min_outflow_m3s", "min_turbined_m3s", "min_generation_mw")
GROUP_LIMITS = ("min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw")
WITHOUT_MACHINES = ("min_outflow_m3s", "max_outflow_m3s", "min_spillage_m3s", "max_spillage_m3s")


def _always(case: Case) -> tuple[str, ...]:
    return ALWAYS if case.format_version == "0.19" else ()


class HydroResolver:
    """Limits and costs of hydro plants by stage, from declarations and override tables."""

    def __init__(self, case: Case) -> None:
        self._always = _always(case)
        self._hydros = case.system.hydros
        order = positions_by_id(hydro.id for hydro in self._hydros)
        self._bounds = OverrideRows(case.overrides.hydro_bounds, ("hydro_id",), order)
        self._geometry = geometry_by_hydro(case.production.geometry)
        self._production = ProductionResolver(case, self._geometry)
        self._costs = HydroCostResolver(case)
        self._filling = FillingPlan(case, self._bounds)
        self._service = ServiceTimes(self._hydros)
        self._declared = _declared(self._hydros)
        self._declared_storage = (
            numbers(self._hydros, lambda hydro: hydro.reservoir.min_storage_hm3),
            numbers(self._hydros, lambda hydro: hydro.reservoir.max_storage_hm3),
        )
        self._no_withdrawal = np.zeros(len(self._hydros))
        self._evaporates = np.array([hydro.evaporation is not None for hydro in self._hydros], dtype=np.bool_)
        self._lines: dict[tuple[int, float], tuple[Floats, Floats]] = {}

    def resolve(self, stage: Stage) -> HydroNumbers:
        """Return the numbers of all hydro plants in a stage."""
        is_active = self._service.at(stage.id)
        is_filling = self._filling.is_filling(stage.id)
        k0, kv = self._evaporation(stage)
        return HydroNumbers(
            is_active=is_active,
            is_filling=is_filling,
            was_filled=self._filling.was_filled(stage.id),
            filling_target_hm3=self._filling.target_hm3(stage.id),
            **self._stage_limits(stage),
            **self._block_limits(stage, is_active, is_filling),
            productivity_mw_per_m3s=self._production.productivity[stage.id],
            planes=tuple(self._production.planes[stage.id]),
            has_evaporation=(is_active | is_filling) & self._evaporates,
            evaporation_k0=k0,
            evaporation_kv=kv,
            **self._costs.resolve(stage.id),
        )

    def storage_limits(self, stage: Stage) -> tuple[Floats, Floats]:
        """Return least and most storage, without regard to the status of a plant."""
        minimum, maximum = self._declared_storage
        return (
            self._bounds.by_stage(stage.id, "min_storage_hm3", minimum),
            self._bounds.by_stage(stage.id, "max_storage_hm3", maximum),
        )

    def _stage_limits(self, stage: Stage) -> Mapping[str, Floats]:
        minimum, maximum = self.storage_limits(stage)
        return {
            "declared_min_storage_hm3": self._declared_storage[0],
            "min_storage_hm3": minimum,
            "max_storage_hm3": maximum,
            "water_withdrawal_m3s": self._bounds.by_stage(stage.id, "water_withdrawal_m3s", self._no_withdrawal),
        }

    def _block_limits(self, stage: Stage, is_active: Flags, is_filling: Flags) -> Mapping[str, Floats]:
        limits, is_there = {}, is_active | is_filling
        for name, declared in self._declared.items():
            # While a plant fills, its machines and its channel rest; water over the spillway obeys all limits.
            counts = is_there if name in WITHOUT_MACHINES else is_active
            limits[name] = self._bounds.by_block(stage, name, declared, None if name in self._always else counts)
        # A plant that is not there limits nothing. What a plant without a channel may divert leaves the system.
        if not is_there.all():
            limits["max_outflow_m3s"] = np.where(is_there[:, None], limits["max_outflow_m3s"], np.inf)
        return limits

    def _evaporation(self, stage: Stage) -> tuple[Floats, Floats]:
        """Return constants and slopes of all plants, the same in every stage of a month."""
        month = (stage.start_date.month, hours_of_month(stage))
        if month not in self._lines:
            lines = [evaporation_line(hydro, self._geometry.get(hydro.id), stage) for hydro in self._hydros]
            self._lines[month] = numbers(lines, lambda line: line.k0), numbers(lines, lambda line: line.kv)
        return self._lines[month]


def _declared(hydros: Sequence[Hydro]) -> dict[str, Floats]:
    """Return the values of entity files, by the names of override columns."""
    return {
        "min_outflow_m3s": numbers(hydros, lambda hydro: hydro.outflow.min_outflow_m3s),
        "max_outflow_m3s": numbers(hydros, _max_outflow),
        # The declared minimums of a plant are those of its groups, which cover them.
        "min_turbined_m3s": np.zeros(len(hydros)),
        "max_turbined_m3s": numbers(hydros, lambda hydro: hydro.generation.max_turbined_m3s),
        "min_generation_mw": np.zeros(len(hydros)),
        "max_generation_mw": numbers(hydros, lambda hydro: hydro.generation.max_generation_mw),
        "min_diversion_m3s": np.zeros(len(hydros)),
        "max_diversion_m3s": numbers(hydros, lambda hydro: hydro.diversion.flow_limit_m3s if hydro.diversion else 0.0),
        "min_spillage_m3s": np.zeros(len(hydros)),
        "max_spillage_m3s": np.full(len(hydros), np.inf),
    }


def _max_outflow(hydro: Hydro) -> float:
    return np.inf if hydro.outflow.max_outflow_m3s is None else hydro.outflow.max_outflow_m3s


class GroupResolver:
    """Unit groups of all plants, one after the other."""

    def __init__(self, case: Case) -> None:
        self._always = _always(case)
        self._hydros = case.system.hydros
        pairs = [(hydro, group) for hydro in self._hydros for group in hydro.unit_groups]
        order = {(hydro.id, group.id): position for position, (hydro, group) in enumerate(pairs)}
        self._service = ServiceTimes([hydro for hydro, _ in pairs])
        self._declared = {
            name: np.array([getattr(group, name) for _, group in pairs], dtype=np.float64) for name in GROUP_LIMITS
        }
        ids = ("hydro_id", "hydro_unit_group_id")
        self._bounds = OverrideRows(case.overrides.hydro_unit_group_bounds, ids, order)

    def resolve(self, stage: Stage) -> GroupNumbers:
        """Return the numbers of all unit groups in a stage."""
        return GroupNumbers(
            min_turbined_m3s=self._limit(stage, "min_turbined_m3s"),
            max_turbined_m3s=self._limit(stage, "max_turbined_m3s"),
            min_generation_mw=self._limit(stage, "min_generation_mw"),
            max_generation_mw=self._limit(stage, "max_generation_mw"),
        )

    def _limit(self, stage: Stage, name: str) -> Floats:
        is_active = None if name in self._always else self._service.at(stage.id)
        return self._bounds.by_block(stage, name, self._declared[name], is_active)


# Connections between plants and buses, as indices.

NO_PLANT = -1


def find_topology(case: Case) -> Topology:
    """Return all connections; ids become positions in canonical order."""
    system = case.system
    hydros = positions_by_id(hydro.id for hydro in system.hydros)
    buses = positions_by_id(bus.id for bus in system.buses)
    groups = [(hydro, group) for hydro in system.hydros for group in hydro.unit_groups]
    stations, contracts = system.pumping_stations, system.energy_contracts
    return Topology(
        downstream=indices(system.hydros, lambda hydro: _position(hydros, hydro.downstream_id)),
        diversion_target=indices(
            system.hydros, lambda hydro: _position(hydros, hydro.diversion.downstream_id if hydro.diversion else None)
        ),
        group_hydro=indices(groups, lambda pair: hydros[pair[0].id]),
        group_bus=indices(groups, lambda pair: buses[pair[1].bus_id]),
        group_share=np.array([_share(hydro, group) for hydro, group in groups], dtype=np.float64),
        thermal_bus=indices(system.thermals, lambda plant: buses[plant.bus_id]),
        line_source=indices(system.lines, lambda line: buses[line.source_bus_id]),
        line_target=indices(system.lines, lambda line: buses[line.target_bus_id]),
        source_bus=indices(system.non_controllable_sources, lambda source: buses[source.bus_id]),
        pumping_bus=indices(stations, lambda station: buses[station.bus_id]),
        pumping_source=indices(stations, lambda station: hydros[station.source_hydro_id]),
        pumping_destination=indices(stations, lambda station: hydros[station.destination_hydro_id]),
        contract_bus=indices(contracts, lambda contract: buses[contract.bus_id]),
        contract_sign=np.array([1.0 if contract.type == "import" else -1.0 for contract in contracts]),
    )


def _share(hydro: Hydro, group: UnitGroup) -> float:
    total = sum_in_order(each.max_turbined_m3s for each in hydro.unit_groups)
    return group.max_turbined_m3s / total if total > 0 else 1.0 / len(hydro.unit_groups)


def _position(positions: Mapping[int, int], entity_id: int | None) -> int:
    return NO_PLANT if entity_id is None else positions[entity_id]
