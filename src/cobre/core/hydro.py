"""Hydro plants: reservoir, turbines, tailrace, evaporation, and how water becomes power."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date
from typing import Any, Literal

from numpy.typing import NDArray

from cobre.core.temporal import Stage
from cobre.records import dataclass

ProductionModelName = Literal["constant_productivity", "linearized_head", "fpha"]


@dataclass(frozen=True, slots=True)
class Reservoir:
    """Minimum and maximum stored volume, hm3."""

    min_storage_hm3: float
    max_storage_hm3: float


@dataclass(frozen=True, slots=True)
class Outflow:
    """Limits of the outflow, m3/s; violations are penalised."""

    min_outflow_m3s: float
    max_outflow_m3s: float | None = None


@dataclass(frozen=True, slots=True)
class HydroGeneration:
    """Production model, and limits of the flow (m3/s) and power (MW) of all turbines together."""

    model: ProductionModelName
    min_turbined_m3s: float
    max_turbined_m3s: float
    min_generation_mw: float
    max_generation_mw: float


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """Machines of a plant that feed one bus."""

    id: int
    name: str
    bus_id: int
    min_turbined_m3s: float
    max_turbined_m3s: float
    min_generation_mw: float
    max_generation_mw: float


@dataclass(frozen=True, slots=True)
class TailracePoint:
    """A point of a piecewise tailrace curve: the level below the plant at an outflow."""

    outflow_m3s: float
    height_m: float


@dataclass(frozen=True, slots=True)
class Tailrace:
    """Downstream level by outflow: a polynomial, or straight lines between points."""

    type: Literal["polynomial", "piecewise"]
    coefficients: tuple[float, ...] | None = None
    points: tuple[TailracePoint, ...] | None = None


@dataclass(frozen=True, slots=True)
class HydraulicLosses:
    """Hydraulic head loss: a share of the head (`factor`, in `value`) or metres (`constant`, in `value_m`)."""

    type: Literal["factor", "constant"]
    value: float | None = None
    value_m: float | None = None


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Efficiency of turbine and generator together, 0 to 1."""

    type: Literal["constant"]
    value: float


@dataclass(frozen=True, slots=True)
class Evaporation:
    """Evaporation in mm for each calendar month, and the volumes around which the area is linearised."""

    coefficients_mm: tuple[float, ...]
    reference_volumes_hm3: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Diversion:
    """A second outlet of the reservoir, to another plant, with its maximum flow in m3/s; None: no limit."""

    downstream_id: int
    max_flow_m3s: float | None = None

    @property
    def flow_limit_m3s(self) -> float:
        """The maximum flow as a number, infinite without a limit."""
        return math.inf if self.max_flow_m3s is None else self.max_flow_m3s


@dataclass(frozen=True, slots=True)
class Filling:
    """The first filling of the dead volume, from `start_stage_id` until the plant's entry."""

    start_stage_id: int
    filling_min_rate_m3s: float = 0.0


@dataclass(frozen=True, slots=True)
class HydroPenaltyOverrides:
    """A plant's own prices; None: those of penalties.json."""

    spillage_cost: float | None = None
    turbined_cost: float | None = None
    diversion_cost: float | None = None
    storage_violation_below_cost: float | None = None
    filling_target_violation_cost: float | None = None
    turbined_violation_below_cost: float | None = None
    outflow_violation_below_cost: float | None = None
    outflow_violation_above_cost: float | None = None
    generation_violation_below_cost: float | None = None
    evaporation_violation_cost: float | None = None
    water_withdrawal_violation_cost: float | None = None
    inflow_nonnegativity_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Hydro:
    """A hydro plant with its reservoir, turbines and downstream plant."""

    id: int
    name: str
    operational_start_date: date
    reservoir: Reservoir
    outflow: Outflow
    generation: HydroGeneration
    unit_groups: tuple[UnitGroup, ...]
    downstream_id: int | None = None
    travel_time_hours: float | None = None
    specific_productivity_mw_per_m3s_per_m: float | None = None
    entry_stage_id: int | None = None
    exit_stage_id: int | None = None
    tailrace: Tailrace | None = None
    hydraulic_losses: HydraulicLosses | None = None
    efficiency: Efficiency | None = None
    evaporation: Evaporation | None = None
    diversion: Diversion | None = None
    filling: Filling | None = None
    penalties: HydroPenaltyOverrides | None = None


# Production models by plant and stage: hydro_production_models.json and its tables.


@dataclass(frozen=True, slots=True)
class FittingWindow:
    """Volumes between which planes are fitted; None: the storage limits of the plant."""

    volume_min_hm3: float | None = None
    volume_max_hm3: float | None = None
    volume_min_percentile: float | None = None
    volume_max_percentile: float | None = None


@dataclass(frozen=True, slots=True)
class FphaConfig:
    """Planes of the production function: given in a table, or fitted from geometry.

    turbined_fit_max_m3s, spillage_fit_max_m3s: the largest flows of the fit; None: the plant's largest turbined flow,
    and twice its mean inflow.
    """

    source: Literal["precomputed", "computed"]
    volume_discretization_points: int = 5
    turbine_discretization_points: int = 5
    spillage_discretization_points: int = 5
    max_planes_per_hydro: int = 10
    fitting_window: FittingWindow | None = None
    turbined_fit_max_m3s: float | None = None
    spillage_fit_max_m3s: float | None = None


@dataclass(frozen=True, slots=True)
class ReferenceVolume:
    """The volume at which a productivity is evaluated."""

    volume_hm3: float | None = None
    percentile: float | None = None


@dataclass(frozen=True, slots=True)
class ProductionChoice:
    """The production model of a plant in some stages."""

    model: ProductionModelName
    productivity_mw_per_m3s: float | None = None
    fpha_config: FphaConfig | None = None
    reference_volume: ReferenceVolume | None = None


@dataclass(frozen=True, slots=True)
class StageRange:
    """A choice for stages `start_stage_id` to `end_stage_id`, both included; None: to the end."""

    start_stage_id: int
    end_stage_id: int | None
    choice: ProductionChoice


@dataclass(frozen=True, slots=True)
class HydroProduction:
    """One plant's choices: by ranges of stages (the first that fits), or by season with a default."""

    hydro_id: int
    stage_ranges: tuple[StageRange, ...] = ()
    seasons: Mapping[int, ProductionChoice] = field(default_factory=dict)
    default: ProductionChoice | None = None


@dataclass(frozen=True, slots=True)
class PlaneReduction:
    """How the number of fitted planes is reduced."""

    method: Literal["angle", "distance"]
    tolerance_deg: float | None = None
    tolerance_pct: float | None = None
    n_samples: int | None = None


@dataclass(frozen=True, slots=True)
class ProductionModels:
    """Production models by hydro id, and their tables by column as in `core.case`."""

    by_hydro: Mapping[int, HydroProduction] = field(default_factory=dict)
    plane_reduction: PlaneReduction | None = None
    energy_productivity: Mapping[str, NDArray[Any]] | None = None
    hyperplanes: Mapping[str, NDArray[Any]] | None = None
    geometry: Mapping[str, NDArray[Any]] | None = None
    tailrace_curves: Mapping[str, NDArray[Any]] | None = None

    def choice_for(self, hydro: Hydro, stage: Stage) -> ProductionChoice:
        """Return the choice of the file for a plant in a stage, else the model that the plant declares."""
        return self.stages_by_choice(hydro, (stage,))[0][0]

    def stages_by_choice(self, hydro: Hydro, stages: Sequence[Stage]) -> list[tuple[ProductionChoice, Sequence[Stage]]]:
        """Return each choice for a plant with the stages, of those given in order of time, that it holds in.

        Nearly all plants have one choice for all stages, so that callers that ask for choices first need not look at
        stages one by one.
        """
        production = self.by_hydro.get(hydro.id, HydroProduction(hydro.id))
        choices: list[tuple[ProductionChoice, Sequence[Stage]]] = []
        remaining = stages
        for part in production.stage_ranges:  # the first range that holds a stage counts
            part_stages, remaining = _split(remaining, part)
            if part_stages:
                choices.append((part.choice, part_stages))
        otherwise = production.default or ProductionChoice(hydro.generation.model)
        if not production.seasons:
            return [*choices, (otherwise, remaining)] if remaining else choices
        by_season: dict[int | None, list[Stage]] = {}
        for stage in remaining:
            season_id = stage.season_id
            by_season.setdefault(season_id if season_id in production.seasons else None, []).append(stage)
        for season_id, of_season in by_season.items():
            choices.append((otherwise if season_id is None else production.seasons[season_id], of_season))
        return choices


def _split(stages: Sequence[Stage], part: StageRange) -> tuple[Sequence[Stage], Sequence[Stage]]:
    """Return the stages within a range, and the others."""
    end = math.inf if part.end_stage_id is None else part.end_stage_id
    if stages and part.start_stage_id <= stages[0].id and stages[-1].id <= end:
        return stages, ()
    within = [stage for stage in stages if part.start_stage_id <= stage.id <= end]
    return within, [stage for stage in stages if not part.start_stage_id <= stage.id <= end]
