"""A case directory, file by file in the order in which they are read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from cobre.core.case import Case, InitialConditions, OverrideTables, ScenarioTables, System, Table
from cobre.core.config import Config, SampledTraining, TrainingConfig
from cobre.core.entities import (
    BusPenalties,
    DeficitSegment,
    HydroPenalties,
    LinePenalties,
    NonControllablePenalties,
    Penalties,
)
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
from cobre.core.preparation_steps import PreparationStep, StepReporter, no_report
from cobre.core.stopping import IterationLimit
from cobre.core.temporal import Horizon, PolicyGraph
from cobre.errors import CaseIoError
from cobre.io.case_folder.case_files import OPTIONAL_JSON, REQUIRED_JSON, check_files
from cobre.io.decoding.format_version import (
    RecognisedFormat,
    drop_errors_of_other_format,
    recognise_format,
    refuse_other_format,
)
from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.decoding.parquet_tables import TableFormat, read_table
from cobre.io.findings import Findings
from cobre.io.input_files.config import read_config, with_paths_from
from cobre.io.input_files.config_overrides import ConfigDocument, name_overrides
from cobre.io.input_files.correlation import read_correlation
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
from cobre.io.input_files.generic_constraints import BOUNDS, read_generic_constraints
from cobre.io.input_files.production_models import read_production_models
from cobre.io.input_files.stages import read_load_factors, read_post_study_stages, read_source_factors, read_stages
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES, production_tables
from cobre.io.validation import check_case

# Placeholders for files that cannot be decoded; rules that need them are left out.
NO_CONFIG = Config(TrainingConfig(SampledTraining(1), (IterationLimit(1),)))
NO_HORIZON = Horizon(PolicyGraph("finite_horizon", 0.0, (), ()), ())
NO_CONDITIONS = InitialConditions({})

NO_PENALTIES = Penalties(
    BusPenalties((DeficitSegment(depth_mw=None, cost=1.0),), 1.0),
    LinePenalties(1.0),
    HydroPenalties(*[1.0] * 11),
    NonControllablePenalties(1.0),
)

Overrides = Mapping[str, object]
Documents = Mapping[str, Document | None]


class CaseWithFindings(NamedTuple):
    """A valid case, and its warnings."""

    case: Case
    findings: Findings


def load_case(path: str | Path, config_overrides: Overrides | None = None) -> Case:
    """Read and check the case in a directory. Raises InvalidCaseError, which lists all errors of all files.

    config_overrides: settings by dotted name that replace those of config.json.

    >>> case = cobre.load_case("examples/two_reservoirs", {"training.tree_seed": 7})
    >>> case.config.training.tree_seed
    7
    """
    return load_case_with_findings(path, config_overrides).case


def load_case_with_findings(
    path: str | Path,
    config_overrides: Overrides | None = None,
    config: ConfigDocument | None = None,
    report: StepReporter = no_report,
) -> CaseWithFindings:
    """Load a case as `load_case` does, and return its warnings. config: config.json, if already read."""
    findings = Findings()
    case = read_case(path, findings, config_overrides, config, report)
    findings.raise_errors(str(path))
    assert case is not None, "without errors there is a case"  # noqa: S101
    return CaseWithFindings(case, findings)


def check_folder(path: str | Path) -> None:
    """Raise CaseIoError unless there is a directory."""
    if not Path(path).is_dir():
        what = "is not a directory" if Path(path).exists() else "does not exist"
        raise CaseIoError(f"case directory {what}: {path}")


def format_of(path: str | Path) -> RecognisedFormat | None:
    """Return the format of a case and the reason, also of a case with errors; None without config.json."""
    folder = Path(path)
    config = ConfigDocument.read(folder) if folder.is_dir() else None
    if config is None or config.document is None:
        return None
    return recognise_format(folder, _read_documents(folder, config, Findings()))


def read_case(
    path: str | Path,
    findings: Findings,
    overrides: Overrides | None = None,
    config: ConfigDocument | None = None,
    report: StepReporter = no_report,
    formats: list[RecognisedFormat] | None = None,
) -> Case | None:
    """Return the case, or None if it has errors, which are added to `findings`.

    Structure and schema are checked in all files; then references and all rules whose inputs could be decoded.
    formats: gets the format, once it is known.
    """
    report(PreparationStep.READING, 0, 0)
    folder = Path(path)
    if not check_files(folder, findings):
        return None
    documents = _read_documents(folder, config or ConfigDocument.read(folder), findings)
    case_format = recognise_format(folder, documents)
    if formats is not None:
        formats.append(case_format)
    settings = with_paths_from(
        folder, read_config(documents[CONFIG_FILE], overrides, findings, case_format) or NO_CONFIG
    )
    name, start = folder.resolve().name, len(findings)
    case = decode_case(
        name, settings, documents, lambda form: read_table(folder, form, findings), findings, case_format
    )
    if not findings.errors:
        report(PreparationStep.CHECKING, 0, 0)
    check_case(case, documents, findings)
    name_overrides(overrides or {}, findings, start)
    return None if findings.errors else case


def _read_documents(folder: Path, config: ConfigDocument, findings: Findings) -> dict[str, Document | None]:
    findings.extend(config.findings)
    others = [name for name in REQUIRED_JSON if name != CONFIG_FILE]
    required = {name: read_document(folder, name, findings, is_required=True) for name in others}
    optional = {name: read_document(folder, name, findings) for name in OPTIONAL_JSON}
    return {CONFIG_FILE: config.document} | required | optional


def decode_case(
    name: str,
    config: Config,
    documents: Documents,
    table: Callable[[TableFormat], Table | None],
    findings: Findings,
    case_format: RecognisedFormat,
) -> Case:
    """Return the case of some files, with placeholders for those that cannot be decoded.

    The result is in canonical order, independent of file order.
    documents: by name, all of `REQUIRED_JSON` and `OPTIONAL_JSON`; None: no such file.
    table: gives the Parquet table of a format, sorted by its keys; None: no such file.
    case_format: the format of the files; features of the other one are errors.
    """
    start = len(findings)
    for file, document in documents.items():
        if file != CONFIG_FILE:  # read_config includes its overrides
            refuse_other_format(case_format, document, findings)
    horizon = read_stages(documents[STAGES_FILE], findings)
    initial_conditions = read_initial_conditions(documents[CONDITIONS_FILE], findings)
    penalties = read_penalties(documents[PENALTIES_FILE], findings)
    system = _read_system(documents, findings)
    tables = {field: table(form) for field, form in production_tables(case_format.version).items()}
    production = read_production_models(documents[PRODUCTION_FILE], tables, findings)
    scenarios = _read_scenarios(documents, {field: table(form) for field, form in SCENARIO_TABLES.items()}, findings)
    overriding = {field: table(form) for field, form in OVERRIDE_TABLES.items()}
    generic_constraints = read_generic_constraints(
        documents[CONSTRAINTS_FILE],
        documents[PARAMETERS_FILE],
        table(BOUNDS),
        findings,
        case_format,
    )
    post_study = read_post_study_stages(documents[POST_STUDY_FILE], findings)
    drop_errors_of_other_format(case_format, findings, start)
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
        format_version=case_format.version,
    )


def _read_system(documents: Documents, findings: Findings) -> System:
    return System(
        buses=read_buses(documents[BUSES_FILE], findings),
        lines=read_lines(documents[LINES_FILE], findings),
        hydros=read_hydros(documents[HYDROS_FILE], findings),
        thermals=read_thermals(documents[THERMALS_FILE], findings),
        non_controllable_sources=read_non_controllable_sources(documents[SOURCES_FILE], findings),
        pumping_stations=read_pumping_stations(documents[STATIONS_FILE], findings),
        energy_contracts=read_energy_contracts(documents[CONTRACTS_FILE], findings),
    )


def _read_scenarios(documents: Documents, tables: Mapping[str, Table | None], findings: Findings) -> ScenarioTables:
    return ScenarioTables(
        **tables,
        correlation=read_correlation(documents[CORRELATION_FILE], findings),
        load_factors=read_load_factors(documents[LOAD_FACTORS_FILE], findings),
        non_controllable_factors=read_source_factors(documents[SOURCE_FACTORS_FILE], findings),
    )
