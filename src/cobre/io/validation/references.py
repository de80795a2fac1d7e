"""References between entities: every id that is used must be declared."""

from collections.abc import Iterator, Mapping
from typing import Any

from cobre.core.case import Case
from cobre.core.temporal import PreStudyStage, Stage
from cobre.io.decoding.json_documents import Document
from cobre.io.findings.problems import Layer, Problems
from cobre.io.input_files import correlation_file, entities, production_models, stages_file
from cobre.io.input_files.stages_file import LOAD_FILE, SOURCE_FILE
from cobre.io.validation.layer_findings import Findings, Rule, named
from cobre.io.validation.tables.case_tables import declared_ids

CORRELATED = {"inflow": "hydro", "load": "bus", "ncs": "non-controllable source"}


def buses_of_plants(case: Case, findings: Findings) -> None:
    """Buses of thermals, sources, stations and contracts exist."""
    known = declared_ids(case).by_class["bus"]
    groups = (
        (entities.THERMALS, "thermal", case.system.thermals),
        (entities.SOURCES, "non-controllable source", case.system.non_controllable_sources),
        (entities.STATIONS, "pumping station", case.system.pumping_stations),
        (entities.CONTRACTS, "contract", case.system.energy_contracts),
    )
    for file, word, members in groups:
        for entity in members:
            findings.demand_known(known, "bus", entity.bus_id, file, named(word, entity), "bus_id")


def ends_of_lines(case: Case, findings: Findings) -> None:
    """Lines end at buses that exist."""
    known = declared_ids(case).by_class["bus"]
    for line in case.system.lines:
        for field in ("source_bus_id", "target_bus_id"):
            findings.demand_known(known, "bus", getattr(line, field), entities.LINES, named("line", line), field)


def buses_of_unit_groups(case: Case, findings: Findings) -> None:
    """Unit groups feed buses that exist."""
    known = declared_ids(case).by_class["bus"]
    for hydro in case.system.hydros:
        for group in hydro.unit_groups:
            field = f"unit_groups (id {group.id}).bus_id"
            findings.demand_known(known, "bus", group.bus_id, entities.HYDROS, named("hydro", hydro), field)


def downstream_plants(case: Case, findings: Findings) -> None:
    """Downstream plants and diversion targets exist."""
    known = declared_ids(case).by_class["hydro"]
    for hydro in case.system.hydros:
        entity = named("hydro", hydro)
        findings.demand_known(known, "hydro", hydro.downstream_id, entities.HYDROS, entity, "downstream_id")
        if hydro.diversion is not None:
            target = hydro.diversion.downstream_id
            findings.demand_known(known, "hydro", target, entities.HYDROS, entity, "diversion.downstream_id")


def reservoirs_of_stations(case: Case, findings: Findings) -> None:
    """Pumping stations lift water between plants that exist."""
    known = declared_ids(case).by_class["hydro"]
    for station in case.system.pumping_stations:
        entity = named("pumping station", station)
        for field in ("source_hydro_id", "destination_hydro_id"):
            findings.demand_known(known, "hydro", getattr(station, field), entities.STATIONS, entity, field)


def plants_with_production_models(case: Case, findings: Findings) -> None:
    """Production models belong to plants that exist, and to seasons that are defined."""
    ids = declared_ids(case)
    for hydro_id, production in case.production.by_hydro.items():
        entity = f"production model of hydro {hydro_id}"
        file = production_models.FILE
        findings.demand_known(ids.by_class["hydro"], "hydro", hydro_id, file, entity, "hydro_id")
        for season_id in production.seasons:
            findings.demand_known(ids.seasons, "season", season_id, file, entity, "seasons.season_id")


def plants_with_initial_conditions(case: Case, findings: Findings) -> None:
    """Volumes and observations belong to plants that exist."""
    known = declared_ids(case).by_class["hydro"]
    conditions = case.initial_conditions
    used = {
        "storage": conditions.storage_hm3,
        "filling_storage": conditions.filling_storage_hm3,
        "recent_observations": {row.hydro_id for row in conditions.recent_observations},
    }
    for field, hydro_ids in used.items():
        for hydro_id in sorted(hydro_ids):
            findings.demand_known(known, "hydro", hydro_id, entities.CONDITIONS_FILE, "", f"{field}.hydro_id")


def seasons_of_stages(case: Case, findings: Findings) -> None:
    """Stages refer to seasons that are defined."""
    if case.horizon.season_definitions is None:
        return
    known = declared_ids(case).seasons
    stages: list[Stage | PreStudyStage] = [*case.horizon.pre_study_stages, *case.horizon.stages]
    for stage in stages:
        findings.demand_known(known, "season", stage.season_id, stages_file.FILE, f"stage {stage.id}", "season_id")


def ends_of_transitions(case: Case, findings: Findings) -> None:
    """Transitions join stages, or nodes if the graph has nodes."""
    if case.horizon.policy_graph.nodes:
        return
    known = declared_ids(case).stages
    for edge in case.horizon.policy_graph.transitions:
        entity = f"transition {edge.source_id} -> {edge.target_id}"
        for field in ("source_id", "target_id"):
            findings.demand_known(known, "stage", getattr(edge, field), stages_file.FILE, entity, field)


def block_factors(case: Case, findings: Findings) -> None:
    """Factors belong to a bus or source and to a stage that exist."""
    ids = declared_ids(case)
    kinds = (
        (LOAD_FILE, "bus", "bus_id", case.scenarios.load_factors),
        (SOURCE_FILE, "non-controllable source", "ncs_id", case.scenarios.non_controllable_factors),
    )
    for file, word, field, factors in kinds:
        for entity_id, stage_id in factors:
            entity = f"{word} {entity_id}, stage {stage_id}"
            findings.demand_known(ids.by_class[word], word, entity_id, file, entity, field)
            findings.demand_known(ids.stages, "stage", stage_id, file, entity, "stage_id")


def correlated_entities(case: Case, findings: Findings) -> None:
    """Groups name entities that exist; the schedule names stages and profiles that exist."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    ids, file = declared_ids(case), correlation_file.FILE
    for profile, groups in correlation.profiles.items():
        for group in groups:
            entity = f"profile {profile}, group {group.name}"
            for kind, id_ in group.entities:
                word = CORRELATED[kind]
                findings.demand_known(ids.by_class[word], word, id_, file, entity, "entities.id")
    for stage_id, profile in correlation.schedule.items():
        entity = f"schedule of stage {stage_id}"
        findings.demand_known(ids.stages, "stage", stage_id, file, entity, "stage_id")
        if profile not in correlation.profiles:
            message = f"there is no profile `{profile}`"
            findings.error(file, entity, "profile_name", message, f"declared: {', '.join(correlation.profiles)}")


RULES: tuple[Rule, ...] = (
    buses_of_plants,
    ends_of_lines,
    buses_of_unit_groups,
    downstream_plants,
    reservoirs_of_stations,
    plants_with_production_models,
    plants_with_initial_conditions,
    seasons_of_stages,
    ends_of_transitions,
    block_factors,
    correlated_entities,
)


# References between the JSON files of a case with schema violations: a wrong type must not hide an unknown id.
#
# Such files have no records, so ids are looked up in the parsed JSON. A reference is skipped if the file that
# declares its target cannot be read, or has an entity without a valid id.


ARRAYS = {"bus": (entities.BUSES, "buses"), "hydro": (entities.HYDROS, "hydros")}

# file, array, name of its entities, and for each id field the class that it refers to
REFERENCES = (
    (entities.THERMALS, "thermals", "thermal", {"bus_id": "bus"}),
    (entities.SOURCES, "non_controllable_sources", "non-controllable source", {"bus_id": "bus"}),
    (entities.CONTRACTS, "contracts", "contract", {"bus_id": "bus"}),
    (
        entities.STATIONS,
        "pumping_stations",
        "pumping station",
        {"bus_id": "bus", "source_hydro_id": "hydro", "destination_hydro_id": "hydro"},
    ),
    (entities.LINES, "lines", "line", {"source_bus_id": "bus", "target_bus_id": "bus"}),
    (entities.HYDROS, "hydros", "hydro", {"downstream_id": "hydro"}),
    (entities.CONDITIONS_FILE, "storage", "", {"hydro_id": "hydro"}),
)

Documents = Mapping[str, Document | None]


def check_raw_references(documents: Documents, problems: Problems) -> None:
    """Add an error for each id that no entity has."""
    findings = Findings(Layer.REFERENCES, problems)
    known = {word: declared_in(documents, *array) for word, array in ARRAYS.items()}
    for file, array, word, fields in REFERENCES:
        for element in _elements(documents, file, array):
            for field, target in fields.items():
                _demand(known[target], target, element.get(field), file, _entity(word, element), field, findings)
    for hydro in _elements(documents, entities.HYDROS, "hydros"):
        for group in _dictionaries(hydro.get("unit_groups")):
            field = f"unit_groups (id {group.get('id')}).bus_id"
            _demand(known["bus"], "bus", group.get("bus_id"), entities.HYDROS, _entity("hydro", hydro), field, findings)


def _demand(
    known: frozenset[int] | None, word: str, id_: object, file: str, entity: str, field: str, findings: Findings
) -> None:
    if known is not None and type(id_) is int:
        findings.demand_known(known, word, id_, file, entity, field)


def declared_in(documents: Documents, file: str, array: str) -> frozenset[int] | None:
    """Ids of a class; None if not all of them are known."""
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


def _entity(word: str, element: Mapping[str, Any]) -> str:
    return f"{word} {element.get('id')} ({element.get('name')})" if word else ""
