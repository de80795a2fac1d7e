"""JSON Schemas of the files of a case, generated from the records that decode them.

They hold for both formats. Features of one format are marked in the `description` and machine-readably (`x-format`,
a format or, where values are meant, an object of values and their format).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cobre.core.file_names import (
    BUSES_FILE,
    CONDITIONS_FILE,
    CONFIG_FILE,
    CONSTRAINTS_FILE,
    CONTRACTS_FILE,
    CORRELATION_FILE,
    HYDROS_FILE,
    LINES_FILE,
    LOAD_FACTORS_FILE,
    PARAMETERS_FILE,
    PENALTIES_FILE,
    POST_STUDY_FILE,
    PRODUCTION_FILE,
    SOURCE_FACTORS_FILE,
    SOURCES_FILE,
    STAGES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.io.decoding.format_version import FEATURES, FormatFeature
from cobre.io.decoding.json_records import JsonFile
from cobre.io.input_files.config import ConfigFile
from cobre.io.input_files.correlation import CorrelationFile
from cobre.io.input_files.entities import (
    BusesFile,
    ContractsFile,
    HydrosFile,
    InitialConditionsFile,
    LinesFile,
    PenaltiesFile,
    SourcesFile,
    StationsFile,
    ThermalsFile,
)
from cobre.io.input_files.generic_constraints import GenericConstraintsFile, GenericParametersFile
from cobre.io.input_files.production_models import ProductionFile
from cobre.io.input_files.stages import LoadFactorsFile, PostStudyStagesFile, SourceFactorsFile, StagesFile
from cobre.io.storage.atomic import check_writable, write_file

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# By the name of the schema: the file of a case, and its record.
SCHEMAS: Mapping[str, tuple[str, type[JsonFile]]] = {
    "buses": (BUSES_FILE, BusesFile),
    "config": (CONFIG_FILE, ConfigFile),
    "correlation": (CORRELATION_FILE, CorrelationFile),
    "energy_contracts": (CONTRACTS_FILE, ContractsFile),
    "generic_constraints": (CONSTRAINTS_FILE, GenericConstraintsFile),
    "generic_parameters": (PARAMETERS_FILE, GenericParametersFile),
    "hydros": (HYDROS_FILE, HydrosFile),
    "initial_conditions": (CONDITIONS_FILE, InitialConditionsFile),
    "lines": (LINES_FILE, LinesFile),
    "load_factors": (LOAD_FACTORS_FILE, LoadFactorsFile),
    "non_controllable_factors": (SOURCE_FACTORS_FILE, SourceFactorsFile),
    "non_controllable_sources": (SOURCES_FILE, SourcesFile),
    "penalties": (PENALTIES_FILE, PenaltiesFile),
    "post_study_stages": (POST_STUDY_FILE, PostStudyStagesFile),
    "production_models": (PRODUCTION_FILE, ProductionFile),
    "pumping_stations": (STATIONS_FILE, StationsFile),
    "stages": (STAGES_FILE, StagesFile),
    "thermals": (THERMALS_FILE, ThermalsFile),
}


def write_schemas(folder: Path) -> int:
    """Write NAME.schema.json for each schema; returns their number. Raises WriteError."""
    check_writable(folder)
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=2, sort_keys=True)
        write_file(folder / f"{name}.schema.json", (text + "\n").encode())
    return len(SCHEMAS)


def schema_of(name: str) -> dict[str, object]:
    """Return the JSON Schema of an input file, by its name."""
    file, record = SCHEMAS[name]
    schema = {"$schema": DIALECT, **record.model_json_schema(), "title": file}
    _require_tags(schema)
    for feature in FEATURES:
        if feature.file == file:
            for field in feature.fields:
                _note_format(schema, field.split("."), feature)
    return schema


def _require_tags(schema: dict[str, Any]) -> None:
    """Require the fields that choose between objects: files must have them, though classes have a default."""
    for record in schema.get("$defs", {}).values():
        properties = record.get("properties", {})
        tags = [name for name in ("type", "method") if {"const", "enum"} & set(properties.get(name, ()))]
        if tags and tags[0] not in record.get("required", ()):
            properties[tags[0]].pop("default", None)
            record["required"] = [tags[0], *record.get("required", ())]


def _note_format(schema: dict[str, Any], keys: list[str], feature: FormatFeature) -> None:
    nodes = [schema]
    for key in keys[:-1]:
        nodes = [part["properties"][key.removesuffix("[]")] for node in nodes for part in _objects(schema, node, key)]
        if key.endswith("[]"):
            nodes = [part["items"] for part in nodes]
    for part in (part_of_node for node in nodes for part_of_node in _objects(schema, node, keys[-1])):
        field = part["properties"][keys[-1]]
        choices = field.get("enum", [field["const"]] if "const" in field else None)
        values = [value for value in feature.values if choices is None or value in choices]
        if not feature.values:
            field |= {"description": f"In format {feature.version} only.", "x-format": feature.version}
        elif values:
            names = ", ".join("null, and leaving it out," if value is None else str(value) for value in values)
            versions = {json.dumps(value).strip('"'): feature.version for value in values}
            field |= {
                "description": f"In format {feature.version} only: {names}.".replace(",.", "."),
                "x-format": versions,
            }


def _objects(schema: Mapping[str, Any], node: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects with a field of this name that a part of a schema allows."""
    if "$ref" in node:
        yield from _objects(schema, schema["$defs"][node["$ref"].rpartition("/")[2]], key)
    for part in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _objects(schema, part, key)
    if key.removesuffix("[]") in node.get("properties", {}):
        yield node
