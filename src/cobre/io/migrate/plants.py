"""system/*.json: dates of operation, unit groups, and what the new format cannot express."""

from cobre.io.migrate.old_case import Json, Notes, OldCase

HYDROS = "system/hydros.json"
ARRAYS = {
    "system/buses.json": "buses",
    "system/lines.json": "lines",
    "system/thermals.json": "thermals",
    HYDROS: "hydros",
    "system/non_controllable_sources.json": "non_controllable_sources",
    "system/pumping_stations.json": "pumping_stations",
    "system/energy_contracts.json": "contracts",
}
LIMITS = ("min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw")
DIRECTIONAL = (
    "water_withdrawal_violation_pos_cost",
    "water_withdrawal_violation_neg_cost",
    "evaporation_violation_pos_cost",
    "evaporation_violation_neg_cost",
)
NOW_EFFECTIVE = {"system/pumping_stations.json": "pumping stations", "system/energy_contracts.json": "energy contracts"}


def add_start_dates(case: OldCase, notes: Notes) -> None:
    """Give every entity an operational start date, which only affects their order."""
    start = str(case.start_date)
    for file, array in ARRAYS.items():
        for entity in case.entities(file, array):
            entity.setdefault("operational_start_date", start)
    notes.guessed("system/", f"operational_start_date of every entity: {start}, the first day of the study")


def form_unit_groups(case: OldCase, notes: Notes) -> None:
    """Give every hydro plant one unit group at its bus, with the limits of the plant."""
    for hydro in case.entities(HYDROS, "hydros"):
        if "bus_id" in hydro:
            hydro["unit_groups"] = [_group(hydro, hydro.pop("bus_id"))]
    if case.entities(HYDROS, "hydros"):
        notes.converted(HYDROS, "bus_id is now a unit group with the limits of the plant")


def _group(hydro: Json, bus_id: int) -> Json:
    generation = hydro["generation"]
    limits = {field: generation.get(field, 0.0) for field in LIMITS}
    return {"id": 0, "name": hydro.get("name", ""), "bus_id": bus_id, **limits}


def rename_filling(case: OldCase, notes: Notes) -> None:
    """Rename the rate of filling, which is a minimum now; the older program ignored it."""
    for hydro in case.entities(HYDROS, "hydros"):
        filling = hydro.get("filling")
        if filling is None:
            continue
        if "filling_inflow_m3s" in filling:
            filling["filling_min_rate_m3s"] = filling.pop("filling_inflow_m3s")
        notes.now_effective(
            HYDROS, f"hydro {hydro['id']}: filling, at filling_min_rate_m3s (before: filling_inflow_m3s)"
        )


def drop_from_plants(case: OldCase, notes: Notes) -> None:
    """Drop plant fields that the new format does not have, and note each."""
    for thermal in case.entities("system/thermals.json", "thermals"):
        if thermal.pop("gnl_config", None) is not None:
            notes.dropped("system/thermals.json", f"thermal {thermal['id']}: gnl_config, which had no effect")
    for hydro in case.entities(HYDROS, "hydros"):
        prices = hydro.get("penalties") or {}
        for field in DIRECTIONAL:
            if prices.pop(field, None) is not None:
                text = f"hydro {hydro['id']}: penalties.{field}; prices by direction are those of penalties.json only"
                notes.dropped(HYDROS, text)


def note_new_effects(case: OldCase, notes: Notes) -> None:
    """Note the entities that the older program ignored."""
    for file, effect in NOW_EFFECTIVE.items():
        if case.entities(file, ARRAYS[file]):
            notes.now_effective(file, effect)
    for file in ("system/lines.json", "system/thermals.json", HYDROS):
        dated = [
            entity["id"]
            for entity in case.entities(file, ARRAYS[file])
            if entity.get("entry_stage_id") is not None or entity.get("exit_stage_id") is not None
        ]
        if dated:
            notes.now_effective(file, f"entry_stage_id and exit_stage_id of {', '.join(str(id_) for id_ in dated)}")
    if any(line.get("losses_percent") for line in case.entities("system/lines.json", "lines")):
        notes.now_effective("system/lines.json", "losses_percent")
