"""Stages, initial conditions, penalties, entities and production models as JSON documents."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cobre.core.case import Case, InitialConditions, System
from cobre.core.production import FphaConfig, HydroProduction, ProductionChoice, ProductionModels, StageRange
from cobre.core.temporal import Horizon, Stage
from cobre.io.file_names import STAGES_FILE
from cobre.io.saving.plain_values import plain

Named = tuple[str, Any]


def study_documents(case: Case) -> Iterator[Named]:
    """Names of files, and what they hold."""
    yield STAGES_FILE, _horizon(case.horizon)
    yield "initial_conditions.json", _initial_conditions(case.initial_conditions)
    yield "penalties.json", plain(case.penalties)
    if case.post_study.stages or case.post_study.thermal_bounds:
        yield "post_study_stages.json", plain(case.post_study)
    yield from _system(case.system)
    if case.production.by_hydro or case.production.plane_reduction is not None:
        yield "system/hydro_production_models.json", _production(case.production)


def _horizon(horizon: Horizon) -> dict[str, Any]:
    document = {"policy_graph": plain(horizon.policy_graph), "stages": [_stage(stage) for stage in horizon.stages]}
    if horizon.pre_study_stages:
        document["pre_study_stages"] = plain(horizon.pre_study_stages)
    if horizon.season_definitions is not None:
        document["season_definitions"] = plain(horizon.season_definitions)
    return document


def _stage(stage: Stage) -> dict[str, Any]:
    document: dict[str, Any] = plain(stage)
    document.pop("risk", None)
    if stage.risk is not None:
        document["risk_measure"] = {"cvar": {"alpha": stage.risk.alpha, "lambda": stage.risk.lambda_}}
    return document


def _initial_conditions(conditions: InitialConditions) -> dict[str, Any]:
    document = {
        "storage": _volumes(conditions.storage_hm3),
        "filling_storage": _volumes(conditions.filling_storage_hm3),
        "recent_observations": plain(conditions.recent_observations),
    }
    if conditions.past_releases:
        document["past_defluences"] = plain(conditions.past_releases)
    if conditions.past_commitments:
        document["past_anticipated_commitments"] = plain(conditions.past_commitments)
    return document


def _volumes(by_hydro: Mapping[int, float]) -> list[dict[str, Any]]:
    return [{"hydro_id": hydro_id, "value_hm3": value} for hydro_id, value in by_hydro.items()]


def _system(system: System) -> Iterator[Named]:
    """The files of entities; the first four are required, also if empty."""
    required: dict[str, Sequence[object]] = {
        "buses": system.buses,
        "lines": system.lines,
        "hydros": system.hydros,
        "thermals": system.thermals,
    }
    for name, entities in required.items():
        yield f"system/{name}.json", {name: plain(entities)}
    optional: tuple[tuple[str, str, Sequence[object]], ...] = (
        ("non_controllable_sources", "non_controllable_sources", system.non_controllable_sources),
        ("pumping_stations", "pumping_stations", system.pumping_stations),
        ("energy_contracts", "contracts", system.energy_contracts),
    )
    for file, key, entities in optional:
        if entities:
            yield f"system/{file}.json", {key: plain(entities)}


def _production(models: ProductionModels) -> dict[str, Any]:
    document: dict[str, Any] = {"production_models": [_plant(plant) for plant in models.by_hydro.values()]}
    if models.plane_reduction is not None:
        document["fpha_plane_reduction"] = plain(models.plane_reduction)
    return document


def _plant(plant: HydroProduction) -> dict[str, Any]:
    if plant.default is None:
        ranges = [_stage_range(part) for part in plant.stage_ranges]
        return {"hydro_id": plant.hydro_id, "selection_mode": "stage_ranges", "stage_ranges": ranges}
    seasons = [{"season_id": season} | _choice(choice) for season, choice in plant.seasons.items()]
    return {
        "hydro_id": plant.hydro_id,
        "selection_mode": "seasonal",
        "default_model": plant.default.model,
        "seasons": seasons,
    }


def _stage_range(part: StageRange) -> dict[str, Any]:
    stages = {"start_stage_id": part.start_stage_id}
    if part.end_stage_id is not None:
        stages["end_stage_id"] = part.end_stage_id
    return stages | _choice(part.choice)


def _choice(choice: ProductionChoice) -> dict[str, Any]:
    document: dict[str, Any] = plain(choice)
    if choice.fpha_config is not None:
        # Defaults are left out: a reader of the file would report some of them as settings without effect.
        default = plain(FphaConfig(choice.fpha_config.source)) | {"source": None}
        given = document["fpha_config"].items()
        document["fpha_config"] = {name: value for name, value in given if value != default.get(name)}
    return document
