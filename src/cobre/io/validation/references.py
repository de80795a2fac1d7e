"""References between inputs: every id that is used must be declared.

Ids come from the decoded entities. Of a file that violates its schema they are looked up in the parsed JSON instead, so
that a wrong type does not hide an unknown id; a class with an entity whose id is not valid is not checked at all.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from cobre.core.arrays import distinct_values
from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.file_names import (
    BUSES_FILE,
    CONDITIONS_FILE,
    CONSTRAINTS_FILE,
    CONTRACTS_FILE,
    CORRELATION_FILE,
    HYDROS_FILE,
    LINES_FILE,
    LOAD_FACTORS_FILE,
    PARAMETERS_FILE,
    PRODUCTION_FILE,
    SOURCE_FACTORS_FILE,
    SOURCES_FILE,
    STAGES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.core.generic_constraints import GenericConstraint, Term
from cobre.core.temporal import PreStudyStage, Stage
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.decoding.schema_errors import DUPLICATE_ID
from cobre.io.findings import Findings, IdList, Layer, Part, Subject, about, error_code, named, warning_code
from cobre.io.input_files.constraint_expressions import VARIABLES, EntityClass
from cobre.io.input_files.generic_constraints import BOUNDS
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES
from cobre.io.validation.rules import UNKNOWN_REFERENCE, distinct
from cobre.records import dataclass

Documents = Mapping[str, Document | None]

UNKNOWN_PROFILE = error_code(
    "unknown-correlation-profile", Layer.REFERENCES, "there is no profile `{value}`", remedy="declared: {declared}"
)

BUS_NOT_FED = error_code(
    "bus-not-fed-by-plant",
    Layer.REFERENCES,
    "no unit group of hydro {hydro} feeds bus {value}",
    remedy="it feeds: {buses}",
)

CONTRACT_DIRECTION = error_code(
    "contract-direction", Layer.REFERENCES, "contract {contract} is an {value}", remedy="write contract_{value}"
)

ROWS_OF_OTHER_STAGES = warning_code(
    "rows-of-other-stages",
    Layer.REFERENCES,
    "rows of stages that stages.json does not have are not used: {value}",
)

# Classes of entities: by the word in messages, the file and its array.
CLASSES: Mapping[str, tuple[str, str]] = {
    "bus": (BUSES_FILE, "buses"),
    "line": (LINES_FILE, "lines"),
    "thermal": (THERMALS_FILE, "thermals"),
    "hydro": (HYDROS_FILE, "hydros"),
    "non-controllable source": (SOURCES_FILE, "non_controllable_sources"),
    "pumping station": (STATIONS_FILE, "pumping_stations"),
    "contract": (CONTRACTS_FILE, "contracts"),
    "constraint": (CONSTRAINTS_FILE, "constraints"),
}

# The class that each id column of a table refers to.
CLASS_OF_COLUMN: Mapping[str, str] = {
    "hydro_id": "hydro",
    "bus_id": "bus",
    "ncs_id": "non-controllable source",
    "thermal_id": "thermal",
    "line_id": "line",
    "pumping_station_id": "pumping station",
    "contract_id": "contract",
    "constraint_id": "constraint",
}

CORRELATED = {"inflow": "hydro", "load": "bus", "ncs": "non-controllable source"}

WORDS: dict[EntityClass, str] = {
    "hydro": "hydro",
    "thermal": "thermal",
    "line": "line",
    "bus": "bus",
    "pumping_station": "pumping station",
    "contract": "contract",
    "non_controllable_source": "non-controllable source",
}

# Rows of pre-study stages are allowed here: lags refer to them.
REACHES_BACK = ("inflow_seasonal_stats", "inflow_ar_coefficients", "inflow_annual_component")
MAY_NAME_OTHER_STAGES = (*REACHES_BACK, "load_seasonal_stats", "non_controllable_stats")


@dataclass(frozen=True, slots=True)
class DeclaredIds:
    """Ids that a case declares, by class; None: not all of them are known, so that references are not checked."""

    by_class: Mapping[str, frozenset[int] | None]
    stages: frozenset[int] | None
    pre_study_stages: frozenset[int] | None
    seasons: frozenset[int] | None

    def require(self, kind: str, id_: int | None, file: str, subject: Subject, field: str, findings: Findings) -> None:
        """Add an error if the id of an entity (None: no reference) is not declared."""
        require_declared(self.by_class[kind], kind, id_, file, subject, field, findings)

    def require_stage(self, id_: int, file: str, subject: Subject, field: str, findings: Findings) -> None:
        """Add an error if a stage is not declared."""
        require_declared(self.stages, "stage", id_, file, subject, field, findings)


def require_declared(
    declared: Collection[int] | None,
    kind: str,
    id_: int | None,
    file: str,
    subject: Subject,
    field: str,
    findings: Findings,
) -> None:
    """Add an error if an id (None: no reference) is not among the declared ones (None: not known)."""
    if declared is not None and id_ is not None and id_ not in declared:
        findings.add(UNKNOWN_REFERENCE, file, subject, field, kind=kind, value=id_, declared=IdList(declared))


def check_references(case: Case, documents: Documents, undecoded: frozenset[str], findings: Findings) -> None:
    """Add an error for each reference to something that is not declared.

    undecoded: files that could not be decoded; documents: their parsed JSON, where parsing succeeded.
    """
    ids = _declared_ids(case, documents, undecoded, findings)
    for check in CHECKS:
        check(case, ids, findings)
    _check_undecoded(case, documents, undecoded, ids, findings)


def _declared_ids(case: Case, documents: Documents, undecoded: frozenset[str], findings: Findings) -> DeclaredIds:
    wrong_ids = {error.file for error in findings.errors if error.field == "id" and error.code is not DUPLICATE_ID}
    system, horizon = case.system, case.horizon
    members: dict[str, Iterable[Any]] = {
        "bus": system.buses,
        "line": system.lines,
        "thermal": system.thermals,
        "hydro": system.hydros,
        "non-controllable source": system.non_controllable_sources,
        "pumping station": system.pumping_stations,
        "contract": system.energy_contracts,
        "constraint": case.generic_constraints.constraints,
    }

    def ids_of(file: str, array: str, decoded: Iterable[Any]) -> frozenset[int] | None:
        if file not in undecoded:
            return frozenset(entity.id for entity in decoded)
        return None if file in wrong_ids else _ids_in(documents, file, array)

    definitions = horizon.season_definitions
    seasons = frozenset(season.id for season in definitions.seasons) if definitions else frozenset[int]()
    return DeclaredIds(
        by_class={word: ids_of(file, array, members[word]) for word, (file, array) in CLASSES.items()},
        stages=ids_of(STAGES_FILE, "stages", horizon.stages),
        pre_study_stages=None
        if STAGES_FILE in undecoded
        else frozenset(stage.id for stage in horizon.pre_study_stages),
        seasons=None if STAGES_FILE in undecoded else seasons,
    )


# References of JSON files.


def _plants(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check buses of thermals, sources, stations, contracts, lines and unit groups."""
    groups = (
        (THERMALS_FILE, "thermal", case.system.thermals, ("bus_id",)),
        (SOURCES_FILE, "non-controllable source", case.system.non_controllable_sources, ("bus_id",)),
        (STATIONS_FILE, "pumping station", case.system.pumping_stations, ("bus_id",)),
        (CONTRACTS_FILE, "contract", case.system.energy_contracts, ("bus_id",)),
        (LINES_FILE, "line", case.system.lines, ("source_bus_id", "target_bus_id")),
    )
    for file, word, members, fields in groups:
        for entity in members:
            for field in fields:
                ids.require("bus", getattr(entity, field), file, named(word, entity), field, findings)
    for hydro in case.system.hydros:
        for group in hydro.unit_groups:
            field = f"unit_groups (id {group.id}).bus_id"
            ids.require("bus", group.bus_id, HYDROS_FILE, named("hydro", hydro), field, findings)


def _waterways(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check downstream plants, targets of diversions, and the two reservoirs of pumping stations."""
    for hydro in case.system.hydros:
        subject = named("hydro", hydro)
        ids.require("hydro", hydro.downstream_id, HYDROS_FILE, subject, "downstream_id", findings)
        if hydro.diversion is not None:
            target = hydro.diversion.downstream_id
            ids.require("hydro", target, HYDROS_FILE, subject, "diversion.downstream_id", findings)
    for station in case.system.pumping_stations:
        for field in ("source_hydro_id", "destination_hydro_id"):
            hydro_id = getattr(station, field)
            ids.require("hydro", hydro_id, STATIONS_FILE, named("pumping station", station), field, findings)


def _production_models(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check plants and seasons of production models."""
    for hydro_id, production in case.production.by_hydro.items():
        subject = about("production model of hydro", hydro_id)
        ids.require("hydro", hydro_id, PRODUCTION_FILE, subject, "hydro_id", findings)
        for season_id in production.seasons:
            field = "seasons.season_id"
            require_declared(ids.seasons, "season", season_id, PRODUCTION_FILE, subject, field, findings)


def _initial_conditions(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check plants of volumes and observations."""
    conditions = case.initial_conditions
    used = {
        "storage": conditions.storage_hm3,
        "filling_storage": conditions.filling_storage_hm3,
        "recent_observations": {row.hydro_id for row in conditions.recent_observations},
    }
    for field, hydro_ids in used.items():
        for hydro_id in sorted(hydro_ids):
            ids.require("hydro", hydro_id, CONDITIONS_FILE, (), f"{field}.hydro_id", findings)


def _stages(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check seasons of stages, and stages of transitions if the graph has no nodes."""
    if case.horizon.season_definitions is not None:
        stages: list[Stage | PreStudyStage] = [*case.horizon.pre_study_stages, *case.horizon.stages]
        for stage in stages:
            subject = about("stage", stage.id)
            require_declared(ids.seasons, "season", stage.season_id, STAGES_FILE, subject, "season_id", findings)
    if not case.horizon.policy_graph.nodes:
        for edge in case.horizon.policy_graph.transitions:
            subject = about("transition", f"{edge.source_id} -> {edge.target_id}")
            for field in ("source_id", "target_id"):
                ids.require_stage(getattr(edge, field), STAGES_FILE, subject, field, findings)


def _block_factors(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check the bus or source, and the stage, of block factors."""
    kinds = (
        (LOAD_FACTORS_FILE, "bus", "bus_id", case.scenarios.load_factors),
        (SOURCE_FACTORS_FILE, "non-controllable source", "ncs_id", case.scenarios.non_controllable_factors),
    )
    for file, word, field, factors in kinds:
        known_ids, known_stages = ids.by_class[word], ids.stages
        for entity_id, stage_id in factors:
            is_known = known_ids is None or entity_id in known_ids
            if is_known and (known_stages is None or stage_id in known_stages):
                continue  # as nearly all of thousands
            subject = about(word, entity_id, "stage", stage_id)
            ids.require(word, entity_id, file, subject, field, findings)
            ids.require_stage(stage_id, file, subject, "stage_id", findings)


def _correlations(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check entities of correlation groups, and stages and profiles of the schedule."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    for profile, groups in correlation.profiles.items():
        for group in groups:
            subject = about("profile", profile, "group", group.name)
            for kind, id_ in group.entities:
                ids.require(CORRELATED[kind], id_, CORRELATION_FILE, subject, "entities.id", findings)
    for stage_id, profile in correlation.schedule.items():
        subject = about("schedule of stage", stage_id)
        ids.require_stage(stage_id, CORRELATION_FILE, subject, "stage_id", findings)
        if profile not in correlation.profiles:
            declared = ", ".join(correlation.profiles)
            findings.add(UNKNOWN_PROFILE, CORRELATION_FILE, subject, "profile_name", value=profile, declared=declared)


# References of tables.


def scenario_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """Yield the tables of scenarios/ that the case has."""
    for name, form in SCENARIO_TABLES.items():
        table = getattr(case.scenarios, name)
        if table is not None:
            yield form, table


def override_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """Yield the tables of constraints/ that the case has, bounds of generic constraints included."""
    for name, form in OVERRIDE_TABLES.items():
        table = getattr(case.overrides, name)
        if table is not None:
            yield form, table
    if case.generic_constraints.bounds is not None:
        yield BOUNDS, case.generic_constraints.bounds


def production_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """Yield the Parquet tables of system/ that the case has."""
    for name, form in PRODUCTION_TABLES.items():
        table = getattr(case.production, name)
        if table is not None:
            yield form, table


def _entities_of_rows(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check entities in the rows of all tables."""
    for form, table in (*scenario_tables(case), *override_tables(case), *production_tables(case)):
        for column in (column.name for column in form.columns if column.name in CLASS_OF_COLUMN):
            word = CLASS_OF_COLUMN[column]
            if ids.by_class[word] is None:
                continue
            for (id_,) in distinct(table, column):
                ids.require(word, id_, form.file, about(f"rows of {word}", id_), column, findings)


def _unit_groups_of_rows(case: Case, _: DeclaredIds, findings: Findings) -> None:
    """Check unit groups in the rows of their bounds; plants that are not declared are reported elsewhere."""
    groups = {hydro.id: {group.id for group in hydro.unit_groups} for hydro in case.system.hydros}
    file, field = OVERRIDE_TABLES["hydro_unit_group_bounds"].file, "hydro_unit_group_id"
    for hydro_id, group_id in distinct(case.overrides.hydro_unit_group_bounds, "hydro_id", field):
        subject = about("rows of hydro", hydro_id)
        require_declared(groups.get(hydro_id), "unit group", group_id, file, subject, field, findings)


def _stages_of_rows(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check stages in the rows of all tables; statistics of other stages have no effect, with a warning."""
    if ids.stages is None:
        return
    for form, table in (*override_tables(case), *production_tables(case), *scenario_tables(case)):
        if "stage_id" not in table:
            continue
        unknown = {int(id_) for id_ in distinct_values(table["stage_id"]) if id_ != ABSENT_ID} - ids.stages
        if form.file.removeprefix("scenarios/").removesuffix(".parquet") not in MAY_NAME_OTHER_STAGES:
            for id_ in sorted(unknown):
                ids.require_stage(id_, form.file, about("rows of stage", id_), "stage_id", findings)
        elif ids.pre_study_stages is not None and unknown - ids.pre_study_stages:
            others = IdList(unknown - ids.pre_study_stages)
            findings.add(ROWS_OF_OTHER_STAGES, form.file, (), "stage_id", value=others)


# References of generic constraints.


def constraint_subject(constraint: GenericConstraint) -> Subject:
    """Return a generic constraint as a subject, such as `constraint 3 (reserve)`."""
    return (Part("constraint", constraint.id, constraint.name),)


def _terms(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check the entity, bus and direction of each term of a constraint."""
    fed = {hydro.id: {group.bus_id for group in hydro.unit_groups} for hydro in case.system.hydros}
    types = {contract.id: contract.type for contract in case.system.energy_contracts}
    for constraint in case.generic_constraints.constraints:
        subject = constraint_subject(constraint)
        for term in constraint.terms:
            word = WORDS[VARIABLES[term.variable].entity]
            field = f"expression, {term.variable}({term.entity_id})"
            ids.require(word, term.entity_id, CONSTRAINTS_FILE, subject, field, findings)
            buses = fed.get(term.entity_id)
            if term.bus_id is not None and buses is not None and term.bus_id not in buses:
                field = f"expression, {term.variable}({term.entity_id}, bus={term.bus_id})"
                facts = {"hydro": term.entity_id, "value": term.bus_id, "buses": IdList(buses)}
                findings.add(BUS_NOT_FED, CONSTRAINTS_FILE, subject, field, **facts)
            _check_direction(term, types, subject, findings)


def _check_direction(term: Term, types: Mapping[int, str], subject: Subject, findings: Findings) -> None:
    expected = {"contract_import": "import", "contract_export": "export"}.get(term.variable)
    actual = types.get(term.entity_id)
    if expected is not None and actual is not None and actual != expected:
        field = f"expression, {term.variable}({term.entity_id})"
        findings.add(CONTRACT_DIRECTION, CONSTRAINTS_FILE, subject, field, contract=term.entity_id, value=actual)


def _parameters(case: Case, ids: DeclaredIds, findings: Findings) -> None:
    """Check plants of computed parameters."""
    for parameter in case.generic_constraints.parameters.values():
        subject, field = named("parameter", parameter), "computed_spec.hydro_id"
        ids.require("hydro", parameter.hydro_id, PARAMETERS_FILE, subject, field, findings)


CHECKS: tuple[Callable[[Case, DeclaredIds, Findings], None], ...] = (
    _plants,
    _waterways,
    _production_models,
    _initial_conditions,
    _stages,
    _block_factors,
    _correlations,
    _entities_of_rows,
    _unit_groups_of_rows,
    _stages_of_rows,
    _terms,
    _parameters,
)

# References of JSON files that violate their schema, looked up in the parsed JSON.

# file, array, kind of its members, and for each id field the class that it refers to
RAW_REFERENCES = (
    (THERMALS_FILE, "thermals", "thermal", {"bus_id": "bus"}),
    (SOURCES_FILE, "non_controllable_sources", "non-controllable source", {"bus_id": "bus"}),
    (CONTRACTS_FILE, "contracts", "contract", {"bus_id": "bus"}),
    (
        STATIONS_FILE,
        "pumping_stations",
        "pumping station",
        {"bus_id": "bus", "source_hydro_id": "hydro", "destination_hydro_id": "hydro"},
    ),
    (LINES_FILE, "lines", "line", {"source_bus_id": "bus", "target_bus_id": "bus"}),
    (HYDROS_FILE, "hydros", "hydro", {"downstream_id": "hydro"}),
    (CONDITIONS_FILE, "storage", "", {"hydro_id": "hydro"}),
)


def _check_undecoded(
    case: Case, documents: Documents, undecoded: frozenset[str], ids: DeclaredIds, findings: Findings
) -> None:
    system = case.system
    in_case = {  # such as a file whose only errors are duplicate ids: it was checked as part of the case
        THERMALS_FILE: system.thermals,
        SOURCES_FILE: system.non_controllable_sources,
        CONTRACTS_FILE: system.energy_contracts,
        STATIONS_FILE: system.pumping_stations,
        LINES_FILE: system.lines,
        HYDROS_FILE: system.hydros,
        CONDITIONS_FILE: case.initial_conditions.storage_hm3,
    }
    files = {file for file, members in in_case.items() if file in undecoded and not members}
    for file, array, word, fields in RAW_REFERENCES:
        for element in _elements(documents, file, array) if file in files else ():
            for field, target in fields.items():
                id_ = element.get(field)
                if type(id_) is int:
                    path = field if word else f"{array}.{field}"
                    ids.require(target, id_, file, _raw_subject(word, element), path, findings)
    for hydro in _elements(documents, HYDROS_FILE, "hydros") if HYDROS_FILE in files else ():
        for group in _dictionaries(hydro.get("unit_groups")):
            if type(group.get("bus_id")) is int:
                field = f"unit_groups (id {group.get('id')}).bus_id"
                ids.require("bus", group["bus_id"], HYDROS_FILE, _raw_subject("hydro", hydro), field, findings)


def _ids_in(documents: Documents, file: str, array: str) -> frozenset[int] | None:
    """Return the ids of an array of parsed JSON; None if not all of its members have a valid one."""
    document = documents.get(file)
    content = document.content if document is not None else None
    members = content.get(array) if isinstance(content, dict) else None
    if not isinstance(members, list):
        return None
    ids = [member.get("id") if isinstance(member, dict) else None for member in members]
    return frozenset(id_ for id_ in ids if type(id_) is int) if all(type(id_) is int for id_ in ids) else None


def _elements(documents: Documents, file: str, array: str) -> Iterator[dict[str, Any]]:
    document = documents.get(file)
    if document is not None and isinstance(document.content, dict):
        yield from _dictionaries(document.content.get(array))


def _dictionaries(members: object) -> Iterator[dict[str, Any]]:
    if isinstance(members, list):
        yield from (member for member in members if isinstance(member, dict))


def _raw_subject(word: str, element: Mapping[str, Any]) -> Subject:
    return (Part(word, str(element.get("id")), str(element.get("name"))),) if word else ()
