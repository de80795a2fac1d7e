"""Validation of a case in memory, by the same rules as for a case in a directory; nothing is written."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cobre.core.case import Case
from cobre.io.config.file import read_config
from cobre.io.constraints.parameters import FILE as PARAMETER_FILE
from cobre.io.constraints.parameters import decode_parameters
from cobre.io.constraints.reading import FILE as CONSTRAINT_FILE
from cobre.io.constraints.reading import decode_constraints
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import decode
from cobre.io.file_names import CONFIG_FILE, STAGES_FILE
from cobre.io.findings.problems import Layer, Problems
from cobre.io.input_files import block_factors, entities
from cobre.io.input_files.correlation_file import FILE as CORRELATION_FILE
from cobre.io.input_files.correlation_file import read_correlation
from cobre.io.input_files.initial_conditions import read_initial_conditions
from cobre.io.input_files.penalties_file import read_penalties
from cobre.io.input_files.post_study_stages import FILE as POST_STUDY_FILE
from cobre.io.input_files.post_study_stages import read_post_study_stages
from cobre.io.input_files.production_models import FILE as PRODUCTION_FILE
from cobre.io.input_files.production_models import ProductionFile
from cobre.io.input_files.stages_file import read_stages
from cobre.io.saving.documents import case_documents
from cobre.io.saving.table_check import check_tables
from cobre.io.validation import check_case
from cobre.io.validation.computed_values import check_computed_values
from cobre.io.validation.not_modelled import refuse_what_is_not_modelled

Reader = Callable[[Document, Problems], object]
READERS: Mapping[str, Reader] = {
    CONFIG_FILE: lambda document, problems: read_config(document, None, problems),
    STAGES_FILE: read_stages,
    "initial_conditions.json": read_initial_conditions,
    "penalties.json": read_penalties,
    POST_STUDY_FILE: read_post_study_stages,
    entities.BUSES: entities.read_buses,
    entities.LINES: entities.read_lines,
    entities.HYDROS: entities.read_hydros,
    entities.THERMALS: entities.read_thermals,
    entities.SOURCES: entities.read_non_controllable_sources,
    entities.STATIONS: entities.read_pumping_stations,
    entities.CONTRACTS: entities.read_energy_contracts,
    PRODUCTION_FILE: lambda document, problems: decode(document, ProductionFile, problems),
    CORRELATION_FILE: read_correlation,
    block_factors.LOAD_FILE: block_factors.read_load_factors,
    block_factors.SOURCE_FILE: block_factors.read_source_factors,
    PARAMETER_FILE: decode_parameters,
}


def check_given_case(case: Case, name: str | None = None) -> None:
    """Raise InvalidCaseError with all errors; messages name the files that the case would be read from.

    Values are checked by the format first, then the case by the rules of `cobre.io.validation`.
    """
    problems = Problems()
    find_problems(case, problems)
    problems.raise_errors(name or case.name)


def find_problems(case: Case, problems: Problems) -> None:
    """Add all errors and warnings of a case."""
    _check_values(case, problems)
    if not problems.errors:
        refuse_what_is_not_modelled(case, problems)
        check_case(case, problems)
    if not problems.errors:
        check_computed_values(case, problems)


def _check_values(case: Case, problems: Problems) -> None:
    try:
        for name, text in case_documents(case):
            document = Document(name, json.loads(text), text)
            if name == CONSTRAINT_FILE:
                decode_constraints(document, case.generic_constraints.parameters, problems)
            else:
                READERS[name](document, problems)
        check_tables(case, problems)
        _check_order(case, problems)
    except (AttributeError, LookupError, TypeError) as error:  # a part of the case has a wrong type
        message = f"a part of the case has a wrong type: {error}"
        problems.error(Layer.SCHEMA, "case", "", "", message, "the records that load_case gives")


def _check_order(case: Case, problems: Problems) -> None:
    """Entities of a case made in memory must be in canonical order; readers of files sort them."""
    system = case.system
    groups: tuple[tuple[str, Sequence[Any]], ...] = (
        (entities.BUSES, system.buses),
        (entities.LINES, system.lines),
        (entities.HYDROS, system.hydros),
        (entities.THERMALS, system.thermals),
        (entities.SOURCES, system.non_controllable_sources),
        (entities.STATIONS, system.pumping_stations),
        (entities.CONTRACTS, system.energy_contracts),
    )
    for file, members in groups:
        ids = [member.id for member in members]
        if ids != sorted(ids):
            problems.error(Layer.SCHEMA, file, "", "id", "the entities are not in the order of their ids", "sort them")
