"""Dictionaries of the layout: entities, codes, variables, and the limits of every stage."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cobre.core.case import System
from cobre.export.cobre_python.bounds import ENTITIES, bound_columns
from cobre.export.cobre_python.columns import COLUMNS, DICTIONARY_NAMES, columns_of
from cobre.export.cobre_python.writing import Program, write_json, write_table
from cobre.export.spreadsheet_text import spreadsheet_text
from cobre.runs.column_labels import unit_of_column
from cobre.sddp.problem.prepared import PreparedStudy

BOUNDS = (
    *("storage_min", "storage_max", "turbined_min", "turbined_max", "outflow_min", "outflow_max"),
    *("generation_min", "generation_max", "flow_min", "flow_max"),
)
CODES: Mapping[str, Mapping[str, str]] = {
    "bound_type": {str(code): name for code, name in enumerate(BOUNDS)},
    "contract_type": {"0": "import", "1": "export"},
    "entity_type": {str(code): name for name, code in ENTITIES.items()},
    "operative_state": {"0": "deactivated", "1": "maintenance", "2": "operating", "3": "saturated"},
    "storage_binding": {"0": "none", "1": "below_minimum", "2": "above_maximum", "3": "both"},
}
ENTITY_COLUMNS = "entity_type_code entity_id name bus_id system_id"
NO_BUS = -1
TYPES = {"int8": "i8", "int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "float64": "f64"}


def write_dictionaries(study: PreparedStudy, folder: Path, program: Program) -> None:
    """Write the four dictionary files of the layout."""
    codes = {**CODES, "generated_at": datetime.now(UTC).isoformat(), "version": "1.0"}
    write_json(folder / "codes.json", codes)
    _write_csv(folder / "entities.csv", ENTITY_COLUMNS, entity_rows(study.case.system))
    _write_csv(folder / "variables.csv", "file column type unit description nullable", variable_rows(program))
    write_table(folder / "bounds.parquet", "bounds", bound_columns(study))


def entity_rows(system: System) -> Iterator[Sequence[Any]]:
    """Type, id, name, bus (-1: none, or several), and 0 for the one system."""
    listed: Sequence[tuple[str, Sequence[Any]]] = (
        ("hydro", system.hydros),
        ("thermal", system.thermals),
        ("bus", system.buses),
        ("line", system.lines),
        ("pumping_station", system.pumping_stations),
        ("contract", system.energy_contracts),
        ("non_controllable", system.non_controllable_sources),
    )
    for kind, entities in listed:
        for entity in entities:
            bus = entity.id if kind == "bus" else getattr(entity, "bus_id", NO_BUS)
            yield ENTITIES[kind], entity.id, entity.name, bus, 0
    for hydro in system.hydros:
        for group in hydro.unit_groups:
            yield ENTITIES["hydro_unit_group"], group.id, f"{hydro.id}/{group.name}", group.bus_id, 0


def variable_rows(program: Program) -> Iterator[Sequence[Any]]:
    """A row for each column of each table; the description is the name in words, the unit follows from its suffix."""
    for table in COLUMNS:
        for column, kind, may_be_null in columns_of(table, program.more_columns.get(table, "")):
            description = column.replace("_", " ")
            name = DICTIONARY_NAMES.get(table, table)
            yield name, column, TYPES.get(kind, kind), unit_of_column(column), description, str(may_be_null).lower()


def _write_csv(path: Path, header: str, rows: Iterator[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header.split())
        for row in rows:
            writer.writerow([spreadsheet_text(value) if isinstance(value, str) else value for value in row])
