"""scenarios/correlation.json: correlations of the noise of entities."""

from typing import Literal

import numpy as np

from cobre.core.case import Correlation, CorrelationGroup
from cobre.core.file_names import CORRELATION_FILE
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_records import JsonFile, decode
from cobre.io.decoding.schema_errors import report_duplicates
from cobre.io.findings import Findings, Layer, about, error_code
from cobre.records import dataclass

MAX_GROUP = 4_000

GROUP_TOO_LARGE = error_code(
    "correlation-group-too-large",
    Layer.SCHEMA,
    "has {value} entities",
    expected=f"at most {MAX_GROUP} in a group",
)

NOT_SQUARE = error_code(
    "correlation-not-square",
    Layer.DIMENSIONS,
    "the matrix is not square with one row for each of the {value} entities",
    expected="{value} rows of {value} numbers",
)
"""Entities of the largest group: its matrix takes 128 MB, and its decomposition minutes."""


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """A member of a correlation group."""

    type: Literal["inflow", "load", "ncs"]
    id: int


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group of entities, and their correlation matrix in the same order."""

    name: str
    entities: tuple[EntityRecord, ...]
    matrix: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """A correlation profile: groups of entities, each with its matrix."""

    correlation_groups: tuple[GroupRecord, ...]


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """Correlation profile of a stage."""

    stage_id: int
    profile_name: str


class CorrelationFile(JsonFile):
    """All of correlation.json."""

    method: Literal["spectral"]
    profiles: dict[str, ProfileRecord]
    schedule: tuple[ScheduleRecord, ...] | None = None


def read_correlation(document: Document | None, findings: Findings) -> Correlation | None:
    """Read profiles and groups in order of name; None without the file."""
    file = None if _has_large_groups(document, findings) else decode(document, CorrelationFile, findings)
    if file is None:
        return None
    schedule = file.schedule or ()
    report_duplicates(CORRELATION_FILE, "schedule of stage", [row.stage_id for row in schedule], findings, "stage_id")
    return Correlation(
        profiles={name: _groups(name, file.profiles[name], findings) for name in sorted(file.profiles)},
        schedule={row.stage_id: row.profile_name for row in sorted(schedule, key=lambda row: row.stage_id)},
    )


def _has_large_groups(document: Document | None, findings: Findings) -> bool:
    """Return whether a group is too large; reported before its matrix is decoded and decomposed."""
    profiles = document.content.get("profiles") if document and isinstance(document.content, dict) else None
    is_large = False
    for profile, record in profiles.items() if isinstance(profiles, dict) else ():
        groups = record.get("correlation_groups") if isinstance(record, dict) else None
        for group in groups if isinstance(groups, list) else ():
            members = [group.get(part) for part in ("entities", "matrix")] if isinstance(group, dict) else []
            size = max((len(part) for part in members if isinstance(part, list)), default=0)
            if size > MAX_GROUP:
                subject = about("profile", profile, "group", str(group.get("name")))
                findings.add(GROUP_TOO_LARGE, CORRELATION_FILE, subject, "entities", value=size)
                is_large = True
    return is_large


def _groups(profile: str, record: ProfileRecord, findings: Findings) -> tuple[CorrelationGroup, ...]:
    names = [group.name for group in record.correlation_groups]
    report_duplicates(CORRELATION_FILE, "group", names, findings, "name", within=about("profile", profile))
    ordered = sorted(record.correlation_groups, key=lambda group: group.name)
    return tuple(_group(profile, group, findings) for group in ordered)


def _group(profile: str, record: GroupRecord, findings: Findings) -> CorrelationGroup:
    """Sort the entities by class and id, and the matrix in the same order."""
    entities = [(entity.type, entity.id) for entity in record.entities]
    size = len(entities)
    if len(record.matrix) != size or any(len(row) != size for row in record.matrix):
        findings.add(
            NOT_SQUARE, CORRELATION_FILE, about("profile", profile, "group", record.name), "matrix", value=size
        )
        return CorrelationGroup(record.name, tuple(entities), np.zeros((0, 0)))
    order = sorted(range(size), key=lambda position: entities[position])
    matrix = np.array(record.matrix, dtype=np.float64).reshape(size, size)[np.ix_(order, order)]
    return CorrelationGroup(record.name, tuple(entities[position] for position in order), matrix)
