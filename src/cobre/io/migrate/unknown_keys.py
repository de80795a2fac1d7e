"""Remove keys that the new format refuses and the older program ignored."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from cobre.io.config import records as config_records
from cobre.io.decoding.json_files import JsonFile
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.schema_messages import path_in_file
from cobre.io.input_files import (
    block_factors,
    correlation_file,
    entities,
    initial_conditions,
    penalties_file,
    production_models,
    stages_file,
)
from cobre.io.migrate.notes import Notes
from cobre.io.migrate.old_case import OldCase

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
RECORDS: Mapping[str, type[JsonFile]] = {
    CONFIG_FILE: config_records.ConfigFile,
    stages_file.FILE: stages_file.StagesFile,
    initial_conditions.FILE: initial_conditions.InitialConditionsFile,
    penalties_file.FILE: penalties_file.PenaltiesFile,
    entities.BUSES: entities.BusesFile,
    entities.LINES: entities.LinesFile,
    entities.HYDROS: entities.HydrosFile,
    entities.THERMALS: entities.ThermalsFile,
    entities.SOURCES: entities.SourcesFile,
    entities.STATIONS: entities.StationsFile,
    entities.CONTRACTS: entities.ContractsFile,
    production_models.FILE: production_models.ProductionFile,
    block_factors.LOAD_FILE: block_factors.LoadFactorsFile,
    block_factors.SOURCE_FILE: block_factors.SourceFactorsFile,
    correlation_file.FILE: correlation_file.CorrelationFile,
}


def drop_unknown_keys(case: OldCase, notes: Notes) -> None:
    """Drop the keys that no record of the new format has, and note each."""
    for file, content in case.documents.items():
        content.pop("$schema", None)
        record = RECORDS.get(file)
        for path in _unknown(record, content) if record else ():
            _remove(content, path)
            notes.dropped(file, f"{_dotted(path)}, which is not a field of the format")


def _unknown(record: type[JsonFile], content: Any) -> list[tuple[str | int, ...]]:
    try:
        record.model_validate_json(json.dumps(content))
    except ValidationError as error:
        found = [details for details in error.errors(include_url=False) if details["type"] in UNKNOWN]
        return [path_in_file(content, details) for details in found]
    return []


def _remove(content: Any, path: tuple[str | int, ...]) -> None:
    node = content
    for part in path[:-1]:
        node = node[part]
    node.pop(path[-1], None)


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)
