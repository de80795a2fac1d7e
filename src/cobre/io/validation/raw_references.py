"""References between the JSON files of a case with schema violations: a wrong type must not hide an unknown id.

Such files have no records, so ids are looked up in the parsed JSON. A reference is skipped if the file that declares
its target cannot be read, or has an entity without a valid id.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cobre.io.decoding.json_documents import Document
from cobre.io.findings.problems import Layer, Problems
from cobre.io.input_files import entities, initial_conditions
from cobre.io.validation.layer_findings import Findings

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
    (initial_conditions.FILE, "storage", "", {"hydro_id": "hydro"}),
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
