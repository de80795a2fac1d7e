"""JSON Schemas of the files of a case, generated from the records that decode them."""

import json
from collections.abc import Mapping
from pathlib import Path

from cobre.io.config.records import ConfigFile
from cobre.io.constraints.parameters import GenericParametersFile
from cobre.io.constraints.reading import GenericConstraintsFile
from cobre.io.decoding.json_files import JsonFile
from cobre.io.file_names import CONFIG_FILE, STAGES_FILE
from cobre.io.input_files.block_factors import LoadFactorsFile, SourceFactorsFile
from cobre.io.input_files.correlation_file import CorrelationFile
from cobre.io.input_files.entities import (
    BusesFile,
    ContractsFile,
    HydrosFile,
    LinesFile,
    SourcesFile,
    StationsFile,
    ThermalsFile,
)
from cobre.io.input_files.initial_conditions import InitialConditionsFile
from cobre.io.input_files.penalties_file import PenaltiesFile
from cobre.io.input_files.post_study_stages import PostStudyStagesFile
from cobre.io.input_files.production_models import ProductionFile
from cobre.io.input_files.stages_file import StagesFile
from cobre.io.storage.atomic import check_writable, write_file

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# By the name of the schema: the file of a case, and its record.
SCHEMAS: Mapping[str, tuple[str, type[JsonFile]]] = {
    "buses": ("system/buses.json", BusesFile),
    "config": (CONFIG_FILE, ConfigFile),
    "correlation": ("scenarios/correlation.json", CorrelationFile),
    "energy_contracts": ("system/energy_contracts.json", ContractsFile),
    "generic_constraints": ("constraints/generic_constraints.json", GenericConstraintsFile),
    "generic_parameters": ("constraints/generic_parameters.json", GenericParametersFile),
    "hydros": ("system/hydros.json", HydrosFile),
    "initial_conditions": ("initial_conditions.json", InitialConditionsFile),
    "lines": ("system/lines.json", LinesFile),
    "load_factors": ("scenarios/load_factors.json", LoadFactorsFile),
    "non_controllable_factors": ("scenarios/non_controllable_factors.json", SourceFactorsFile),
    "non_controllable_sources": ("system/non_controllable_sources.json", SourcesFile),
    "penalties": ("penalties.json", PenaltiesFile),
    "post_study_stages": ("post_study_stages.json", PostStudyStagesFile),
    "production_models": ("system/hydro_production_models.json", ProductionFile),
    "pumping_stations": ("system/pumping_stations.json", StationsFile),
    "stages": (STAGES_FILE, StagesFile),
    "thermals": ("system/thermals.json", ThermalsFile),
}


def write_schemas(folder: Path) -> int:
    """Write NAME.schema.json for each schema; returns their number. Raises WriteError."""
    check_writable(folder)
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=2, sort_keys=True)
        write_file(folder / f"{name}.schema.json", (text + "\n").encode())
    return len(SCHEMAS)


def schema_of(name: str) -> dict[str, object]:
    """The JSON Schema of an input file, by its name."""
    file, record = SCHEMAS[name]
    return {"$schema": DIALECT, **record.model_json_schema(), "title": file}
