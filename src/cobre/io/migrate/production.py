"""Move productivities from hydros.json to hydro_production_models.json."""

from itertools import groupby
from typing import TYPE_CHECKING

from cobre.io.migrate.old_case import Json, Notes, OldCase

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "system/hydro_production_models.json"
HYDROS = "system/hydros.json"
PRODUCTIVITY = "system/hydro_energy_productivity.parquet"


def convert_production(case: OldCase, notes: Notes) -> None:
    """Write the model of every plant and stage, as ranges of stages."""
    old = {record["hydro_id"]: record for record in case.entities(FILE, "production_models")}
    models = []
    for hydro in sorted(case.entities(HYDROS, "hydros"), key=lambda hydro: hydro["id"]):
        chosen = [(stage["id"], choice_in(hydro, old.get(hydro["id"]), stage)) for stage in case.stages]
        models.append({"hydro_id": hydro["id"], "selection_mode": "stage_ranges", "stage_ranges": _ranges(chosen)})
        hydro["generation"].pop("productivity_mw_per_m3s", None)
    if models:
        case.documents[FILE] = {**case.documents.get(FILE, {}), "production_models": models}
        notes.converted(FILE, "productivities of hydros.json, overrides and models by season are now ranges of stages")
        _tabulate_fpha_plants(case, models, notes)


def choice_in(hydro: Json, record: Json | None, stage: Json) -> Json:
    """The model that the older program used in a stage, in the new format."""
    found = _declared(record, stage) or {}
    model = found.get("model") or (record or {}).get("default_model") or hydro["generation"]["model"]
    choice: Json = {"model": model}
    if model == "fpha":
        config = found.get("fpha_config")
        return {**choice, "fpha_config": config} if config else choice
    productivity = found.get("productivity_override")
    if productivity is None:
        productivity = hydro["generation"].get("productivity_mw_per_m3s")
    return choice if productivity is None else {**choice, "productivity_mw_per_m3s": productivity}


def _declared(record: Json | None, stage: Json) -> Json | None:
    for span in (record or {}).get("stage_ranges", []):
        end = span.get("end_stage_id")
        if span["start_stage_id"] <= stage["id"] and (end is None or stage["id"] <= end):
            return dict(span)
    seasons = (record or {}).get("seasons", [])
    return next((dict(row) for row in seasons if row["season_id"] == stage.get("season_id")), None)


def _ranges(chosen: list[tuple[int, Json]]) -> list[Json]:
    """Ranges of consecutive stages with the same choice; the last has no end."""
    ranges: list[Json] = []
    for _, members in groupby(chosen, key=lambda pair: repr(pair[1])):
        run = list(members)
        ranges.append({"start_stage_id": run[0][0], "end_stage_id": run[-1][0], **run[0][1]})
    ranges[-1]["end_stage_id"] = None
    return ranges


def _tabulate_fpha_plants(case: OldCase, models: list[Json], notes: Notes) -> None:
    """Add the equivalent productivity of plants with planes, which energy columns of the results need."""
    hydros = {hydro["id"]: hydro for hydro in case.entities(HYDROS, "hydros")}
    rows: list[tuple[int, int, float]] = []
    for model in models:
        hydro = hydros[model["hydro_id"]]
        value = _equivalent_productivity(hydro)
        stages = [stage["id"] for stage in case.stages if _model_in(model, stage["id"]) == "fpha"]
        rows += [(hydro["id"], stage_id, value) for stage_id in stages]
    if rows:
        case.tables[PRODUCTIVITY] = _productivity_table(rows)
        text = (
            "equivalent productivity of plants with planes: greatest power over greatest flow; the LP does not use it"
        )
        notes.guessed(PRODUCTIVITY, text)


def _equivalent_productivity(hydro: Json) -> float:
    flow, power = hydro["generation"].get("max_turbined_m3s", 0.0), hydro["generation"].get("max_generation_mw", 0.0)
    return power / flow if flow > 0 and power > 0 else 1.0


def _model_in(model: Json, stage_id: int) -> str:
    spans = (
        span
        for span in model["stage_ranges"]
        if span["start_stage_id"] <= stage_id and (span["end_stage_id"] is None or stage_id <= span["end_stage_id"])
    )
    return str(next(spans)["model"])


def _productivity_table(rows: list[tuple[int, int, float]]) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    nothing = pa.nulls(len(rows), pa.float64())
    return pa.table(
        {
            "hydro_id": pa.array([row[0] for row in rows], pa.int32()),
            "stage_id": pa.array([row[1] for row in rows], pa.int32()),
            "equivalent_productivity_mw_per_m3s": pa.array([row[2] for row in rows], pa.float64()),
            "reference_outflow_m3s": nothing,
            "specific_productivity_mw_per_m3s_per_m": nothing,
        }
    )
