"""The steps of a migration, in order, and the writing of the new case."""

import json
from collections.abc import Callable
from pathlib import Path

from cobre.io.case import read_case
from cobre.io.findings.problems import Layer, Problems
from cobre.io.migrate.configuration import convert_config
from cobre.io.migrate.horizon import convert_stages
from cobre.io.migrate.initial_conditions import convert_initial_conditions
from cobre.io.migrate.notes import MigrationReport, Notes
from cobre.io.migrate.old_case import OldCase, other_files, read_old_case
from cobre.io.migrate.plants import (
    add_start_dates,
    drop_from_plants,
    form_unit_groups,
    rename_filling,
)
from cobre.io.migrate.plants import note_new_effects as note_new_effects_of_plants
from cobre.io.migrate.prices import convert_turbined_cost
from cobre.io.migrate.production import convert_production
from cobre.io.migrate.tables import (
    date_history,
    move_exchange_factors,
    rename_columns,
    split_bounds,
    strict_types,
)
from cobre.io.migrate.tables import note_new_effects as note_new_effects_of_tables
from cobre.io.migrate.unknown_keys import drop_unknown_keys
from cobre.io.storage.atomic import new_directory

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
