"""system/hydro_production_models.json and its tables: production functions of hydro plants."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from cobre.core.case import Table
from cobre.core.file_names import PRODUCTION_FILE
from cobre.core.hydro import (
    FittingWindow,
    FphaConfig,
    HydroProduction,
    PlaneReduction,
    ProductionChoice,
    ProductionModelName,
    ProductionModels,
    ReferenceVolume,
    StageRange,
)
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_records import JsonFile, decode
from cobre.io.decoding.schema_errors import report_duplicates
from cobre.io.findings import Findings, Layer, about, warning_code
from cobre.records import dataclass

NO_EFFECT = warning_code("setting-of-planes-without-effect", Layer.SCHEMA, "has no effect: {reason}")
# Settings of fitted planes that are part of the format but have no effect.
WITHOUT_EFFECT = {
    "max_planes_per_hydro": "all planes are kept; fpha_plane_reduction reduces their number",
    "spillage_discretization_points": "the slope over spilled flow is fitted at separate points",
}

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """Volumes between which planes are fitted; percentiles are shares of the operating range."""

    volume_min_hm3: float | None = None
    volume_max_hm3: float | None = None
    volume_min_percentile: Share | None = None
    volume_max_percentile: Share | None = None


@dataclass(frozen=True, slots=True)
class FphaRecord:
    """How planes are given or fitted; null: the default.

    turbined_fit_max_m3s: largest turbined flow of the fit; null: that of the plant; format 0.19 only.
    spillage_fit_max_m3s: largest spilled flow of the fit; null: twice the plant's mean inflow; format 0.19 only.
    """

    source: Literal["precomputed", "computed"]
    volume_discretization_points: Annotated[int, Field(ge=2)] | None = None
    turbine_discretization_points: Annotated[int, Field(ge=2)] | None = None
    spillage_discretization_points: Annotated[int, Field(ge=2)] | None = None
    max_planes_per_hydro: Annotated[int, Field(ge=1)] | None = None
    fitting_window: WindowRecord | None = None
    turbined_fit_max_m3s: Annotated[float, Field(gt=0)] | None = None
    spillage_fit_max_m3s: Annotated[float, Field(gt=0)] | None = None


@dataclass(frozen=True, slots=True)
class StageRangeRecord:
    """The production model of a plant for a range of stages."""

    start_stage_id: int
    model: ProductionModelName
    end_stage_id: int | None = None
    productivity_mw_per_m3s: float | None = None
    fpha_config: FphaRecord | None = None
    reference_volume: ReferenceVolume | None = None


@dataclass(frozen=True, slots=True)
class SeasonRecord:
    """The production model of a plant in a season."""

    season_id: int
    model: ProductionModelName
    productivity_mw_per_m3s: float | None = None
    fpha_config: FphaRecord | None = None
    reference_volume: ReferenceVolume | None = None


@dataclass(frozen=True, slots=True)
class ByStageRanges:
    """Production models by ranges of stages."""

    hydro_id: int
    selection_mode: Literal["stage_ranges"]
    stage_ranges: tuple[StageRangeRecord, ...]


@dataclass(frozen=True, slots=True)
class BySeason:
    """Production models by season, with a model for all other seasons."""

    hydro_id: int
    selection_mode: Literal["seasonal"]
    default_model: ProductionModelName
    seasons: tuple[SeasonRecord, ...]


@dataclass(frozen=True, slots=True)
class ByAngle:
    """Merge planes whose angle is below the tolerance."""

    method: Literal["angle"]
    tolerance_deg: Annotated[float, Field(ge=0, le=90)]


@dataclass(frozen=True, slots=True)
class ByDistance:
    """Merge planes whose distance over volumes and flows is below the tolerance."""

    method: Literal["distance"]
    tolerance_pct: Annotated[float, Field(ge=0)]
    n_samples: Annotated[int, Field(ge=1)]


class ProductionFile(JsonFile):
    """All of hydro_production_models.json."""

    production_models: tuple[Annotated[ByStageRanges | BySeason, Field(discriminator="selection_mode")], ...]
    fpha_plane_reduction: Annotated[ByAngle | ByDistance, Field(discriminator="method")] | None = None


def read_production_models(
    document: Document | None, tables: Mapping[str, Table | None], findings: Findings
) -> ProductionModels:
    """Read production models by plant, with the tables of planes, geometry and productivity (`PRODUCTION_TABLES`)."""
    file = decode(document, ProductionFile, findings) or ProductionFile(production_models=())
    hydros = [record.hydro_id for record in file.production_models]
    report_duplicates(PRODUCTION_FILE, "production model of hydro", hydros, findings, "hydro_id")
    ordered = sorted(file.production_models, key=lambda record: record.hydro_id)
    return ProductionModels(
        by_hydro={record.hydro_id: _hydro_production(record, findings) for record in ordered},
        plane_reduction=_plane_reduction(file.fpha_plane_reduction),
        **tables,
    )


def _hydro_production(record: ByStageRanges | BySeason, findings: Findings) -> HydroProduction:
    _warn_of_settings_without_effect(record, findings)
    if isinstance(record, ByStageRanges):
        ranges = (StageRange(row.start_stage_id, row.end_stage_id, _choice(row)) for row in record.stage_ranges)
        return HydroProduction(record.hydro_id, stage_ranges=tuple(ranges))
    seasons = [row.season_id for row in record.seasons]
    subject = about("production model of hydro", record.hydro_id)
    report_duplicates(PRODUCTION_FILE, "season", seasons, findings, "season_id", within=subject)
    return HydroProduction(
        record.hydro_id,
        seasons={row.season_id: _choice(row) for row in sorted(record.seasons, key=lambda row: row.season_id)},
        default=ProductionChoice(record.default_model),
    )


def _warn_of_settings_without_effect(record: ByStageRanges | BySeason, findings: Findings) -> None:
    rows = record.stage_ranges if isinstance(record, ByStageRanges) else record.seasons
    configs = [row.fpha_config for row in rows if row.fpha_config is not None and row.fpha_config.source == "computed"]
    for name, reason in WITHOUT_EFFECT.items():
        if any(getattr(config, name) is not None for config in configs):
            subject = about("production model of hydro", record.hydro_id)
            findings.add(NO_EFFECT, PRODUCTION_FILE, subject, f"fpha_config.{name}", reason=reason)


def _choice(row: StageRangeRecord | SeasonRecord) -> ProductionChoice:
    return ProductionChoice(row.model, row.productivity_mw_per_m3s, _fpha(row.fpha_config), row.reference_volume)


def _fpha(record: FphaRecord | None) -> FphaConfig | None:
    if record is None:
        return None
    values = {name: getattr(record, name) for name in FphaRecord.__dataclass_fields__}
    if (window := record.fitting_window) is not None:
        values["fitting_window"] = FittingWindow(**{name: getattr(window, name) for name in window.__match_args__})
    return FphaConfig(**{name: value for name, value in values.items() if value is not None})


def _plane_reduction(record: ByAngle | ByDistance | None) -> PlaneReduction | None:
    if record is None:
        return None
    if isinstance(record, ByAngle):
        return PlaneReduction("angle", tolerance_deg=record.tolerance_deg)
    return PlaneReduction("distance", tolerance_pct=record.tolerance_pct, n_samples=record.n_samples)
