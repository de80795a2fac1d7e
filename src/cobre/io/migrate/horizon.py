"""stages.json: openings, lags in the state, seasons."""

from datetime import date

from cobre.io.file_names import STAGES_FILE
from cobre.io.migrate.old_case import Notes, OldCase

FILE = STAGES_FILE
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def convert_stages(case: OldCase, notes: Notes) -> None:
    """Convert stages.json to the new format."""
    stages = case.stages
    for stage in stages:
        if "num_scenarios" in stage:
            stage["num_openings"] = stage.pop("num_scenarios")
    notes.converted(FILE, "num_scenarios is now num_openings")
    if case.documents[FILE].pop("scenario_source", None) is not None:
        notes.dropped(FILE, "scenario_source, which belongs to config.json")
    if case.has_lags:
        _put_lags_into_the_state(case, notes)
        _define_seasons(case, notes)
    if any(stage.get("block_mode") == "chronological" for stage in stages):
        notes.now_effective(FILE, "block_mode chronological: the older program took all blocks as parallel")


def _put_lags_into_the_state(case: OldCase, notes: Notes) -> None:
    for stage in case.stages:
        stage["state_variables"] = {"storage": True, "inflow_lags": True}
    notes.converted(FILE, "state_variables.inflow_lags is true: the older program always had the lags in the state")


def _define_seasons(case: OldCase, notes: Notes) -> None:
    """Define calendar months as seasons where the case has none: inflow lags refer to seasons."""
    content = case.documents[FILE]
    if content.get("season_definitions"):
        return
    for stage in (*case.stages, *(content.get("pre_study_stages") or [])):
        stage["season_id"] = date.fromisoformat(stage["start_date"]).month - 1
    seasons = [{"id": index, "label": label, "month_start": index + 1} for index, label in enumerate(MONTHS)]
    content["season_definitions"] = {"cycle_type": "monthly", "seasons": seasons}
    text = "season_definitions and season_id: the months of the calendar. Noise is drawn for each month, where stages "
    notes.guessed(FILE, f"{text}of one season shared it before")
