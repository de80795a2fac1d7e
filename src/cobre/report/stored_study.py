"""The content of study.json: names of entities, dates and hours of stages, limits of lines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.runs.labels import KINDS_BY_ID
from cobre.text import singular


class StoredStudy:
    """The content of study.json; without the file, ids are shown instead of names and dates."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self._by_id: dict[str, dict[int, Mapping[str, Any]]] = {}
        self._entities = _as_mapping(content.get("entities"))
        stages = [stage for stage in _as_records(content.get("stages")) if isinstance(stage.get("id"), int)]
        self._starts = {stage["id"]: str(stage["start_date"]) for stage in stages if stage.get("start_date")}
        self._blocks = {
            stage["id"]: stage["block_hours"] for stage in stages if _are_positive(stage.get("block_hours"))
        }
        self._hours = {stage["id"]: float(stage["hours"]) for stage in stages if _is_positive(stage.get("hours"))}

    @property
    def name(self) -> str | None:
        """The name of the study; None if study.json has none."""
        return str(self.content["name"]) if self.content.get("name") else None

    @property
    def is_risk_averse(self) -> bool:
        """Whether the objective is not the expected cost."""
        return self.content.get("is_risk_averse") is True

    @property
    def has_exact_bounds(self) -> bool:
        """Whether training enumerated all paths of a tree."""
        training = _as_mapping(_as_mapping(self.content.get("config")).get("training"))
        return _as_mapping(training.get("selection")).get("method") == "enumerated"

    @property
    def warnings(self) -> list[str]:
        """The warnings of the case."""
        stored = self.content.get("warnings")
        return [str(warning) for warning in stored] if isinstance(stored, list) else []

    @property
    def line_limits(self) -> Sequence[Mapping[str, Any]]:
        """Limits of lines by stage and block, one record for each line."""
        return _as_records(self.content.get("line_limits"))

    def hours(self, stages: Iterable[int]) -> list[float] | None:
        """Return the hours of each stage; None if study.json lacks some of them."""
        known = [self._hours.get(stage) for stage in stages]
        return None if None in known else [hours for hours in known if hours is not None]

    def block_hours(self, stages: Iterable[int], num_blocks: int) -> NDArray[np.float64] | None:
        """Return hours by stage and block, 0 for missing blocks; None if study.json lacks some of them."""
        hours_by_stage = [self._blocks.get(stage) for stage in stages]
        if any(hours is None or len(hours) > num_blocks for hours in hours_by_stage):
            return None
        return np.array([[*hours, *[0.0] * (num_blocks - len(hours))] for hours in hours_by_stage if hours is not None])

    def entities(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the entities of a kind, in the order of the case."""
        return [entry for entry in _as_records(self._entities.get(kind)) if _is_id(entry.get("id"))]

    @property
    def known_starts(self) -> Mapping[int, str]:
        """The start dates of stages by id, for stages that have one."""
        return self._starts

    def starts(self, stages: Iterable[int]) -> list[str] | None:
        """Return the start date of each stage; None if study.json lacks some of them."""
        starts = [self._starts.get(stage) for stage in stages]
        return None if None in starts else [start for start in starts if start is not None]

    def entity(self, kind: str, id: int) -> Mapping[str, Any]:  # noqa: A002
        """Return the record of an entity; empty if there is none."""
        if kind not in self._by_id:
            records = _as_records(self._entities.get(kind))
            self._by_id[kind] = {entry["id"]: entry for entry in reversed(records) if isinstance(entry.get("id"), int)}
        return self._by_id[kind].get(id, {})

    def entity_name(self, kind: str, id: int) -> str:  # noqa: A002
        """Return the name of an entity, or its kind and id if it has none."""
        name = self.entity(kind, id).get("name")
        return str(name) if name else f"{singular(kind)} {id}".replace("_", " ")

    def stage_labels(self, stages: Iterable[int]) -> list[str]:
        """Return labels of stages: months, days where stages are shorter, or ids without dates."""
        ids = list(stages)
        starts = [self._starts.get(stage) for stage in ids]
        if any(start is None for start in starts):
            return [f"stage {stage}" for stage in ids]
        months = [str(start)[:7] for start in starts]
        return months if len(set(months)) == len(months) else [str(start)[:10] for start in starts]


def kind_of(column: str) -> str | None:
    """Return the kind of entity whose ids a column has, such as `hydros` for `hydro_id`; None for other columns."""
    return KINDS_BY_ID.get(column)


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_records(value: object) -> Sequence[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def _are_positive(values: object) -> bool:
    return isinstance(values, list) and bool(values) and all(_is_positive(value) for value in values)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
