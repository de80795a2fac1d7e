"""Which production model a plant has in a stage."""

from math import isnan

from cobre.core.case import ABSENT_ID, Case
from cobre.core.hydro import Hydro
from cobre.core.production import ProductionChoice
from cobre.core.temporal import Stage


def choice_of(case: Case, hydro: Hydro, stage: Stage) -> ProductionChoice:
    """The choice of the first range that contains the stage, or of its season, or the model that the plant declares."""
    production = case.production.by_hydro.get(hydro.id)
    if production is None:
        return ProductionChoice(hydro.generation.model)
    for span in production.stage_ranges:
        if span.start_stage_id <= stage.id and (span.end_stage_id is None or stage.id <= span.end_stage_id):
            return span.choice
    if stage.season_id is not None and stage.season_id in production.seasons:
        return production.seasons[stage.season_id]
    return production.default or ProductionChoice(hydro.generation.model)


def tabulated_productivity(case: Case) -> dict[tuple[int, int], float]:
    """Values of hydro_energy_productivity.parquet by plant and stage (ABSENT_ID: all stages)."""
    table = case.production.energy_productivity
    if table is None:
        return {}
    values = table["equivalent_productivity_mw_per_m3s"]
    rows = zip(table["hydro_id"].tolist(), table["stage_id"].tolist(), values.tolist(), strict=True)
    return {(hydro, stage): value for hydro, stage, value in rows if not isnan(value)}


def tabulated_for(table: dict[tuple[int, int], float], hydro: Hydro, stage: Stage) -> float | None:
    """The value for a stage, else that for all stages, else None."""
    return table.get((hydro.id, stage.id), table.get((hydro.id, ABSENT_ID)))
