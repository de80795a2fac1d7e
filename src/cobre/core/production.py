"""Production models by plant and stage: hydro_production_models.json and its tables."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from numpy.typing import NDArray

from cobre.core.hydro import Hydro, ProductionModelName
from cobre.core.temporal import Stage
from cobre.records import dataclass


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
        """The choice of the file for a plant in a stage, else the model that the plant declares."""
        production = self.by_hydro.get(hydro.id)
        choice = None if production is None else _given_choice(production, stage)
        return choice or ProductionChoice(hydro.generation.model)


def _given_choice(production: HydroProduction, stage: Stage) -> ProductionChoice | None:
    """The first range that holds the stage, or its season's choice."""
    for part in production.stage_ranges:
        if part.start_stage_id <= stage.id and (part.end_stage_id is None or stage.id <= part.end_stage_id):
            return part.choice
    if stage.season_id is not None and stage.season_id in production.seasons:
        return production.seasons[stage.season_id]
    return production.default
