"""The steps of a migration, in order, and the writing of the new case."""

import json
from collections.abc import Callable
from pathlib import Path

from cobre.io.case import read_case
from cobre.io.file_names import CONFIG_FILE as FILE
from cobre.io.findings.problems import Layer, Problems
from cobre.io.migrate.horizon import convert_stages
from cobre.io.migrate.initial_conditions import convert_initial_conditions
from cobre.io.migrate.old_case import (
    Json,
    MigrationReport,
    Notes,
    OldCase,
    drop_unknown_keys,
    other_files,
    read_old_case,
)
from cobre.io.migrate.plants import add_start_dates, drop_from_plants, form_unit_groups, rename_filling
from cobre.io.migrate.plants import note_new_effects as note_new_effects_of_plants
from cobre.io.migrate.prices import convert_turbined_cost
from cobre.io.migrate.production import convert_production
from cobre.io.migrate.tables import date_history, move_exchange_factors, rename_columns, split_bounds, strict_types
from cobre.io.migrate.tables import note_new_effects as note_new_effects_of_tables
from cobre.io.storage.atomic import new_directory

# config.json: selections, cut selection, stopping rules.


# The iteration limit that the older program used instead of its rule `simulation`.
ITERATIONS_OF_OLD_SIMULATION_RULE = 100

HAS_NO_SUCCESSOR = {
    "training": ("forward_pass", "cut_formulation"),
    "simulation": ("policy_type", "output_path", "output_mode"),
    "policy": ("validate_compatibility",),
}


def convert_config(case: OldCase, notes: Notes) -> None:
    """Convert config.json to the new format."""
    config = case.documents[FILE]
    training, simulation = config.setdefault("training", {}), config.get("simulation")
    _convert_selection(training, "forward_passes", "training", notes)
    if simulation is not None:
        _convert_selection(simulation, "num_scenarios", "simulation", notes)
    _convert_cut_selection(training, notes)
    _convert_stopping_rules(training, notes)
    _convert_estimation(config, notes)
    _drop_fields(config, notes)
    _ask_for_openings(case, training, notes)


def _convert_selection(section: Json, field: str, name: str, notes: Notes) -> None:
    count = section.pop(field, None)
    if count is not None:
        section["selection"] = {"method": "sampled", field: count}
        notes.converted(FILE, f"{name}.{field} {count} is now {name}.selection")


def _convert_cut_selection(training: Json, notes: Notes) -> None:
    old = training.pop("cut_selection", None)
    if old is None:
        return
    new: Json = {"selection": _method(old) if old.get("enabled") else None}
    for field, old_field in (
        ("max_active_per_stage", "max_active_per_stage"),
        ("row_activity_tolerance", "cut_activity_tolerance"),
    ):
        if old.get(old_field):
            new[field] = old[old_field]
    training["cut_selection"] = new
    method = old.get("method") if old.get("enabled") else "none"
    notes.converted(FILE, f"training.cut_selection ({method}) has its new layout")
    lost = [field for field in ("threshold", "memory_window", "basis_activity_window") if field in old]
    if lost and old.get("enabled"):
        notes.dropped(FILE, f"training.cut_selection: {', '.join(lost)}, which the new methods do not have")


def _method(old: Json) -> Json:
    method: Json = {"method": old.get("method", "level1")}
    if "check_frequency" in old:
        method["check_frequency"] = old["check_frequency"]
    if method["method"] == "domination":
        method["domination_tolerance"] = float(old.get("domination_epsilon") or old.get("threshold") or 0.0)
    return method


def _convert_stopping_rules(training: Json, notes: Notes) -> None:
    rules = training.get("stopping_rules", [])
    kept = [rule for rule in rules if rule.get("type") != "simulation"]
    if len(kept) < len(rules):
        notes.dropped(FILE, "the stopping rule `simulation`, which the older program replaced by an iteration limit")
    if not any(rule.get("type") == "iteration_limit" for rule in kept):
        kept.append({"type": "iteration_limit", "limit": ITERATIONS_OF_OLD_SIMULATION_RULE})
        notes.guessed(FILE, f"an iteration limit of {ITERATIONS_OF_OLD_SIMULATION_RULE}: the new format needs one")
    training["stopping_rules"] = kept


def _convert_estimation(config: Json, notes: Notes) -> None:
    estimation = config.get("estimation") or {}
    if estimation.get("order_selection") == "fixed":
        estimation["order_selection"] = "pacf"
        notes.converted(FILE, "estimation.order_selection `fixed`, which meant `pacf`, is now `pacf`")


def _drop_fields(config: Json, notes: Notes) -> None:
    for section, fields in HAS_NO_SUCCESSOR.items():
        for field in fields:
            if field in (config.get(section) or {}):
                del config[section][field]
                notes.dropped(FILE, f"{section}.{field}, which has no successor")
    boundary = (config.get("policy") or {}).get("boundary") or {}
    if boundary.pop("source_stage", None) is not None:
        notes.dropped(FILE, "policy.boundary.source_stage: the stage is found by its date")
    method = (config.get("modeling") or {}).get("inflow_non_negativity") or {}
    if method.pop("penalty_cost", None) is not None:
        notes.dropped(
            FILE, "modeling.inflow_non_negativity.penalty_cost: the cost is that of penalties.json, as before"
        )


def _ask_for_openings(case: OldCase, training: Json, notes: Notes) -> None:
    """Ask for openings from the file in config.json: the older program used the file whenever it existed."""
    if "scenarios/noise_openings.parquet" in case.tables:
        source = training.get("scenario_source") or {}
        training["scenario_source"] = {**source, "openings": {"source": "file"}}
        notes.converted(
            FILE,
            "training.scenario_source.openings asks for noise_openings.parquet, which was always used before",
        )


Step = Callable[[OldCase, Notes], None]


# Some steps rely on earlier ones, as their docstrings say.
STEPS: tuple[Step, ...] = (
    convert_config,
    convert_production,
    convert_stages,
    rename_columns,
    date_history,
    convert_initial_conditions,
    form_unit_groups,
    convert_turbined_cost,
    rename_filling,
    drop_from_plants,
    add_start_dates,
    split_bounds,
    move_exchange_factors,
    note_new_effects_of_plants,
    note_new_effects_of_tables,
    strict_types,
    drop_unknown_keys,
)


def migrate_case(old: Path, new: Path) -> MigrationReport:
    """Write the case in `old` to the new directory `new`, in the current format.

    Raises InvalidCaseError when `old` is not a readable case of the 0.5 format, and WriteError when `new` is not empty
    or cannot be written; then nothing is left at `new`. The new case is read once, and the report has its problems.
    """
    with new_directory(new) as folder:
        case, notes = read_old_case(old), Notes()
        for name in other_files(old):
            notes.dropped(name, "which is not a file of the older format")
        for step in STEPS:
            _take(step, case, notes, old)
        _write(case, folder)
        problems = Problems()
        read_case(folder, problems)
    return MigrationReport(old, new, notes.all(), tuple(problems))


def _take(step: Step, case: OldCase, notes: Notes, old: Path) -> None:
    """Run a step. Old cases are converted unchecked, so that an exception means an invalid case: InvalidCaseError."""
    try:
        step(case, notes)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        problems, part = Problems(), step.__name__.replace("_", " ")
        message = f"cannot be converted ({part}): {type(error).__name__} {error}"
        problems.error(Layer.SCHEMA, "(the whole case)", "", "", message, "a complete case of format version 0.5")
        problems.raise_errors(str(old))


def _write(case: OldCase, folder: Path) -> None:
    from pyarrow import parquet  # noqa: PLC0415

    for name, content in case.documents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for name, table in case.tables.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table.replace_schema_metadata(None), path, compression="zstd")
