"""A case directory, file by file in the order in which they are read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from cobre.core.case import Case, OverrideTables, ScenarioTables, System, Table
from cobre.core.config import Config
from cobre.core.steps import Report, Step, no_report
from cobre.io.case_folder.case_files import OPTIONAL_JSON, REQUIRED_JSON, check_files
from cobre.io.config.file import read_config, with_paths_from
from cobre.io.config.overrides import ConfigDocument
from cobre.io.constraints.reading import BOUNDS, read_generic_constraints
from cobre.io.decoding.format_version import (
    FormatSeen,
    fit_messages,
    is_old_format,
    recognise_format,
    refuse_other_format,
)
from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.decoding.parquet_tables import TableFormat, read_table
from cobre.io.file_names import CONFIG_FILE, STAGES_FILE
from cobre.io.findings.problems import Problems
from cobre.io.input_files.correlation_file import read_correlation
from cobre.io.input_files.entities import (
    read_buses,
    read_energy_contracts,
    read_hydros,
    read_initial_conditions,
    read_lines,
    read_non_controllable_sources,
    read_penalties,
    read_pumping_stations,
    read_thermals,
)
from cobre.io.input_files.production_models import read_production_models
from cobre.io.input_files.stages_file import (
    LOAD_FILE,
    SOURCE_FILE,
    read_load_factors,
    read_post_study_stages,
    read_source_factors,
    read_stages,
)
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES, production_tables
from cobre.io.validation import check_case
from cobre.io.validation.computed_values import check_computed_values
from cobre.io.validation.layer_findings import refuse_what_is_not_modelled
from cobre.io.validation.layers import NO_CONDITIONS, NO_CONFIG, NO_HORIZON, NO_PENALTIES, check_parts

Overrides = Mapping[str, object]
Documents = Mapping[str, Document | None]


class CaseWithProblems(NamedTuple):
    """A valid case, and its warnings."""

    case: Case
    problems: Problems


def load_case(path: str | Path, config_overrides: Overrides | None = None) -> Case:
    """Read and check the case in a directory. Raises InvalidCaseError, which lists all errors of all files.

    config_overrides: settings by dotted name that replace those of config.json.

    >>> case = cobre.load_case("examples/two_reservoirs", {"training.tree_seed": 7})
    >>> case.config.training.tree_seed
    7
    """
    return load_case_with_problems(path, config_overrides).case


def load_case_with_problems(
    path: str | Path,
    config_overrides: Overrides | None = None,
    config: ConfigDocument | None = None,
    report: Report = no_report,
) -> CaseWithProblems:
    """As load_case, with the warnings. config: config.json, if it has been read already."""
    problems = Problems()
    case = read_case(path, problems, config_overrides, config, report)
    problems.raise_errors(str(path))
    assert case is not None, "without errors there is a case"  # noqa: S101
    return CaseWithProblems(case, problems)


def format_of(path: str | Path) -> FormatSeen | None:
    """The format of a case and what says so, whether or not the case has errors; None where config.json is missing."""
    folder = Path(path)
    config = ConfigDocument.read(folder) if folder.is_dir() else None
    if config is None or config.document is None:
        return None
    return recognise_format(folder, _read_documents(folder, config, Problems()))


def read_case(
    path: str | Path,
    problems: Problems,
    overrides: Overrides | None = None,
    config: ConfigDocument | None = None,
    report: Report = no_report,
    formats: list[FormatSeen] | None = None,
) -> Case | None:
    """The case, or None if it has errors, which are added to `problems`. formats: gets the format, once it is known.

    Structure and schema are checked in all files. If one is violated, references between entities and rules on single
    files are still checked as far as possible (`validation.partial`).
    """
    report(Step.READING, 0, 0)
    folder = Path(path)
    if not check_files(folder, problems):
        return None
    documents = _read_documents(folder, config or ConfigDocument.read(folder), problems)
    if is_old_format(documents, problems):
        return None
    seen = recognise_format(folder, documents)
    if formats is not None:
        formats.append(seen)
    settings = with_paths_from(folder, read_config(documents[CONFIG_FILE], overrides, problems, seen) or NO_CONFIG)
    name = folder.resolve().name
    case = decode_case(name, settings, documents, lambda form: read_table(folder, form, problems), problems, seen)
    if problems.errors:
        check_parts(case, documents, problems)
        return None
    report(Step.CHECKING, 0, 0)
    return check_decoded_case(case, problems)


def check_decoded_case(case: Case, problems: Problems) -> Case | None:
    """Check a case whose files were decoded without errors; None if it has errors, which are added to `problems`."""
    refuse_what_is_not_modelled(case, problems)
    check_case(case, problems)
    if not problems.errors:
        check_computed_values(case, problems)
    return None if problems.errors else case


def _read_documents(folder: Path, config: ConfigDocument, problems: Problems) -> dict[str, Document | None]:
    problems.take(config.problems)
    others = [name for name in REQUIRED_JSON if name != CONFIG_FILE]
    required = {name: read_document(folder, name, problems, is_required=True) for name in others}
    optional = {name: read_document(folder, name, problems) for name in OPTIONAL_JSON}
    return {CONFIG_FILE: config.document} | required | optional


def decode_case(
    name: str,
    config: Config,
    documents: Documents,
    table: Callable[[TableFormat], Table | None],
    problems: Problems,
    seen: FormatSeen,
) -> Case:
    """The case of some files, with placeholders for those that cannot be decoded.

    Everything is in canonical order afterwards, whatever its order in the files was.
    documents: by name, all of `REQUIRED_JSON` and `OPTIONAL_JSON`; None: no such file.
    table: gives the Parquet table of a format, sorted by its keys; None: no such file.
    seen: the format that the files are in; what only the other one has is refused.
    """
    start = len(problems)
    for file, document in documents.items():
        if file != CONFIG_FILE:  # its overrides count, too: see read_config
            refuse_other_format(seen, document, problems)
    horizon = read_stages(documents[STAGES_FILE], problems)
    initial_conditions = read_initial_conditions(documents["initial_conditions.json"], problems)
    penalties = read_penalties(documents["penalties.json"], problems)
    system = _read_system(documents, problems)
    tables = {field: table(form) for field, form in production_tables(seen.version).items()}
    production = read_production_models(documents["system/hydro_production_models.json"], tables, problems)
    scenarios = _read_scenarios(documents, {field: table(form) for field, form in SCENARIO_TABLES.items()}, problems)
    overriding = {field: table(form) for field, form in OVERRIDE_TABLES.items()}
    generic_constraints = read_generic_constraints(
        documents["constraints/generic_constraints.json"],
        documents["constraints/generic_parameters.json"],
        table(BOUNDS),
        problems,
        seen,
    )
    post_study = read_post_study_stages(documents["post_study_stages.json"], problems)
    fit_messages(seen, problems, start)
    return Case(
        name=name,
        config=config,
        horizon=horizon or NO_HORIZON,
        initial_conditions=initial_conditions or NO_CONDITIONS,
        penalties=penalties or NO_PENALTIES,
        system=system,
        production=production,
        scenarios=scenarios,
        overrides=OverrideTables(**overriding),
        generic_constraints=generic_constraints,
        post_study=post_study,
        format_version=seen.version,
    )


def _read_system(documents: Documents, problems: Problems) -> System:
    return System(
        buses=read_buses(documents["system/buses.json"], problems),
        lines=read_lines(documents["system/lines.json"], problems),
        hydros=read_hydros(documents["system/hydros.json"], problems),
        thermals=read_thermals(documents["system/thermals.json"], problems),
        non_controllable_sources=read_non_controllable_sources(
            documents["system/non_controllable_sources.json"], problems
        ),
        pumping_stations=read_pumping_stations(documents["system/pumping_stations.json"], problems),
        energy_contracts=read_energy_contracts(documents["system/energy_contracts.json"], problems),
    )


def _read_scenarios(documents: Documents, tables: Mapping[str, Table | None], problems: Problems) -> ScenarioTables:
    return ScenarioTables(
        **tables,
        correlation=read_correlation(documents["scenarios/correlation.json"], problems),
        load_factors=read_load_factors(documents[LOAD_FILE], problems),
        non_controllable_factors=read_source_factors(documents[SOURCE_FILE], problems),
    )
