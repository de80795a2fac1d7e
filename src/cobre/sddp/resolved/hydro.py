"""Hydro plants and their unit groups, stage by stage."""

from collections.abc import Mapping, Sequence

import numpy as np

from cobre.core.arrays import Flags, Floats
from cobre.core.case import Case
from cobre.core.hydro import Hydro
from cobre.core.stage_data import GroupNumbers, HydroNumbers
from cobre.core.temporal import Stage
from cobre.sddp.hydro_models.evaporation import evaporation_line, hours_of_month
from cobre.sddp.hydro_models.geometry import geometry_by_hydro
from cobre.sddp.resolved.declared import ServiceTimes, numbers, per_block, positions_by_id, zero_unless
from cobre.sddp.resolved.filling import FillingPlan
from cobre.sddp.resolved.hydro_costs import HydroCostResolver
from cobre.sddp.resolved.override_rows import OverrideRows
from cobre.sddp.resolved.production import ProductionResolver

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

    def of(self, stage: Stage) -> HydroNumbers:
        """The numbers of all hydro plants in a stage."""
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
            productivity_mw_per_m3s=self._production.productivity(stage),
            planes=self._production.planes(stage),
            has_evaporation=(is_active | is_filling) & self._evaporates,
            evaporation_k0=k0,
            evaporation_kv=kv,
            **self._costs.of(stage.id),
        )

    def storage_limits(self, stage: Stage) -> tuple[Floats, Floats]:
        """Least and most, whatever the state of a plant."""
        least, most = self._declared_storage
        return (
            self._bounds.by_stage(stage.id, "min_storage_hm3", least),
            self._bounds.by_stage(stage.id, "max_storage_hm3", most),
        )

    def _stage_limits(self, stage: Stage) -> Mapping[str, Floats]:
        least, most = self.storage_limits(stage)
        return {
            "declared_min_storage_hm3": self._declared_storage[0],
            "min_storage_hm3": least,
            "max_storage_hm3": most,
            "water_withdrawal_m3s": self._bounds.by_stage(stage.id, "water_withdrawal_m3s", self._no_withdrawal),
        }

    def _block_limits(self, stage: Stage, is_active: Flags, is_filling: Flags) -> Mapping[str, Floats]:
        limits = {}
        for name, declared in self._declared.items():
            values = self._bounds.by_block(stage.id, name, per_block(declared, len(stage.blocks)))
            # While a plant fills, its machines and its channel rest; water over the spillway obeys all limits.
            counts = is_active | is_filling if name in WITHOUT_MACHINES else is_active
            limits[name] = values if name in self._always else zero_unless(counts, values)
        # A plant that is not there limits nothing. What a plant without a channel may divert leaves the system.
        limits["max_outflow_m3s"] = np.where((is_active | is_filling)[:, None], limits["max_outflow_m3s"], np.inf)
        return limits

    def _evaporation(self, stage: Stage) -> tuple[Floats, Floats]:
        """Constants and slopes of all plants, the same in every stage of a month."""
        month = (stage.start_date.month, hours_of_month(stage))
        if month not in self._lines:
            lines = [evaporation_line(hydro, self._geometry.get(hydro.id), stage) for hydro in self._hydros]
            self._lines[month] = numbers(lines, lambda line: line.k0), numbers(lines, lambda line: line.kv)
        return self._lines[month]


def _declared(hydros: Sequence[Hydro]) -> dict[str, Floats]:
    """What files of entities say, by the names of override columns."""
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

    def of(self, stage: Stage) -> GroupNumbers:
        """The numbers of all unit groups in a stage."""
        return GroupNumbers(
            min_turbined_m3s=self._limit(stage, "min_turbined_m3s"),
            max_turbined_m3s=self._limit(stage, "max_turbined_m3s"),
            min_generation_mw=self._limit(stage, "min_generation_mw"),
            max_generation_mw=self._limit(stage, "max_generation_mw"),
        )

    def _limit(self, stage: Stage, name: str) -> Floats:
        values = self._bounds.by_block(stage.id, name, per_block(self._declared[name], len(stage.blocks)))
        if name in self._always:
            return values
        return zero_unless(self._service.at(stage.id), values)
