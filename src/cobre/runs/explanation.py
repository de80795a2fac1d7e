"""Explanation of a stage that could not be solved, from the files that the run left: which limits contradict."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cobre.core.file_names import FAILURES, STUDY_FILE
from cobre.errors import CobreError
from cobre.io.storage.confined import check_untrusted
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.runs.trained_case import changed_case
from cobre.solver.conflict import Conflict, Limit, UnreadableLpError, find_conflict
from cobre.solver.program import INFEASIBLE, OPTIMAL, UNBOUNDED

# Columns and rows of a stage's LP: `turbined[3,0]` is the turbined flow of a plant in a block.

_NAME = re.compile(r"(?P<kind>[^\[\]]+)(\[(?P<indices>[\d,]+)\])?$")
_PLANE = re.compile(r"plane_(\d+)$")
_GENERIC = re.compile(r"generic_\d+_(.*)$")
HYDRO, PAIR = "hydros", "pairs"


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a column or row; `entities` names the list of study.json that its first index counts."""

    words: str
    unit: str
    entities: str
    has_block: bool = True


COLUMNS: Mapping[str, Kind] = {
    "storage": Kind("volume at the end", "hm3", HYDRO, has_block=False),
    "turbined": Kind("turbined flow", "m3/s", PAIR),
    "generation": Kind("generation", "MW", PAIR),
    "spilled": Kind("spilled flow", "m3/s", HYDRO),
    "diverted": Kind("diverted flow", "m3/s", HYDRO),
    "thermal": Kind("generation", "MW", "thermals"),
    "direct": Kind("flow from source to target", "MW", "lines"),
    "reverse": Kind("flow from target to source", "MW", "lines"),
    "deficit": Kind("deficit", "MW", "buses"),
    "excess": Kind("excess", "MW", "buses"),
    "source": Kind("generation", "MW", "non_controllables"),
    "available": Kind("available power", "MW", "non_controllables"),
    "pumped": Kind("pumped flow", "m3/s", "pumping_stations"),
    "contract": Kind("power", "MW", "contracts"),
    "inflow_slack": Kind("correction of negative inflow", "m3/s", HYDRO, has_block=False),
    "evaporated": Kind("evaporation", "m3/s", HYDRO, has_block=False),
    "evaporation_less": Kind("evaporation below its curve", "m3/s", HYDRO, has_block=False),
    "evaporation_more": Kind("evaporation above its curve", "m3/s", HYDRO, has_block=False),
    "withdrawal_less": Kind("withdrawal not met", "m3/s", HYDRO, has_block=False),
    "withdrawal_more": Kind("withdrawal in excess", "m3/s", HYDRO, has_block=False),
    "storage_below": Kind("volume below the soft minimum", "hm3", HYDRO, has_block=False),
    "filling_below": Kind("volume below the filling target", "hm3", HYDRO, has_block=False),
    "outflow_below": Kind("outflow below its minimum", "m3/s", HYDRO),
    "outflow_above": Kind("outflow above its maximum", "m3/s", HYDRO),
    "turbined_below": Kind("turbined flow below its minimum", "m3/s", HYDRO),
    "generation_below": Kind("generation below its minimum", "MW", HYDRO),
    "group_turbined_below": Kind("turbined flow of units below its minimum", "m3/s", PAIR),
    "group_generation_below": Kind("generation of units below its minimum", "MW", PAIR),
    "commitment": Kind("power committed for later stages", "MW", "", has_block=False),
    "in_transit": Kind("water in transit to a later stage", "hm3", "", has_block=False),
    "future_cost": Kind("cost-to-go", "$", "", has_block=False),
}

ROWS: Mapping[str, Kind] = {
    "water_balance": Kind("water balance", "hm3", HYDRO, has_block=False),
    "evaporation": Kind("evaporation curve", "m3/s", HYDRO, has_block=False),
    "min_outflow": Kind("minimum outflow", "m3/s", HYDRO),
    "max_outflow": Kind("maximum outflow", "m3/s", HYDRO),
    "soft_min_storage": Kind("soft minimum volume", "hm3", HYDRO, has_block=False),
    "filling_target": Kind("filling target", "hm3", HYDRO, has_block=False),
    "in_transit": Kind("water in transit to a later stage", "hm3", "", has_block=False),
    "delivery": Kind("delivery of committed power", "MW", "thermals", has_block=False),
    "carried_commitment": Kind("power committed earlier for later stages", "MW", "", has_block=False),
    "power_balance": Kind("power balance", "MW", "buses"),
    "min_turbined": Kind("minimum turbined flow", "m3/s", HYDRO),
    "max_turbined": Kind("maximum turbined flow", "m3/s", HYDRO),
    "min_generation": Kind("minimum generation", "MW", HYDRO),
    "max_generation": Kind("maximum generation", "MW", HYDRO),
    "min_group_turbined": Kind("minimum turbined flow of units", "m3/s", PAIR),
    "min_group_generation": Kind("minimum generation of units", "MW", PAIR),
}

_SINGULAR = {
    "hydros": "hydro",
    "thermals": "thermal",
    "buses": "bus",
    "lines": "line",
    "non_controllables": "source",
    "pumping_stations": "pumping station",
    "contracts": "contract",
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a name. block: None for the whole stage."""

    kind: str
    words: str
    unit: str
    entity: str
    block: int | None


class Dictionary:
    """Meanings of names, with the plants' own names where study.json is there."""

    def __init__(self, entities: Mapping[str, Sequence[Mapping[str, Any]]], plant_of_pair: Sequence[int]) -> None:
        self._entities = entities
        self._plant_of_pair = plant_of_pair

    def column(self, name: str) -> Meaning:
        """Return the meaning of a column of the LP."""
        return self._meaning(name, COLUMNS)

    def row(self, name: str) -> Meaning:
        """Return the meaning of a row of the LP; cuts and generic constraints are recognised by their names."""
        kind = name.partition("[")[0]
        if match := _PLANE.match(kind):
            return Meaning(kind, "production function", "MW", self._entity(PAIR, int(match[1])), _last_index(name))
        if match := _GENERIC.match(name):
            return Meaning(kind, f"generic constraint {match[1]}", "", "", None)
        if kind.startswith("cut"):
            return Meaning(kind, "cut of the cost-to-go", "$", "", None)
        return self._meaning(name, ROWS)

    def _meaning(self, name: str, kinds: Mapping[str, Kind]) -> Meaning:
        match = _NAME.match(name)
        kind = kinds.get(match["kind"]) if match else None
        if match is None or kind is None:
            return Meaning(name, name, "", "", None)
        indices = [int(part) for part in match["indices"].split(",")] if match["indices"] else []
        entity = self._entity(kind.entities, indices[0]) if kind.entities and indices else ""
        block = indices[-1] if kind.has_block and len(indices) > 1 else None
        return Meaning(match["kind"], kind.words, kind.unit, entity, block)

    def _entity(self, kind: str, index: int) -> str:
        if kind == PAIR:
            is_plant = index < len(self._plant_of_pair)
            return self._entity(HYDRO, self._plant_of_pair[index]) if is_plant else f"units {index}"
        entries = self._entities.get(kind, ())
        if index >= len(entries):
            return f"{_SINGULAR[kind]} number {index}"
        return f"{entries[index].get('name')} ({_SINGULAR[kind]} {entries[index].get('id')})"

    def hydro(self, index: int) -> str:
        """Return a hydro plant by its position in canonical order, with name and id."""
        return self._entity(HYDRO, index)


def _last_index(name: str) -> int | None:
    match = _NAME.match(name)
    return int(match["indices"].split(",")[-1]) if match and match["indices"] else None


MAX_PLANTS = 12


class NothingToExplainError(CobreError):
    """There is no saved LP; the message says where one would be."""

    remedy = "give the output directory of a run that failed, or the LP that it saved"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Causes of a failed LP: contradicting limits, smallest relaxation, initial state, inflows; and what to check."""

    file: str
    headline: str
    status: str
    contradiction: tuple[str, ...]
    missing: tuple[str, ...]
    inputs: tuple[str, ...]
    advice: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cobre explain --json` prints."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        lines = [self.file, self.headline]
        for title, entries in (
            ("These cannot all hold:" if self.status == INFEASIBLE else "These are unbounded:", self.contradiction),
            ("Smallest relaxation that would suffice:", self.missing),
            ("Initial state and inflows:", self.inputs),
            ("What to check:", self.advice),
            ("Note:", self.notes),
        ):
            if entries:
                lines += ["", title, *(f"  - {entry}" for entry in entries)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SavedFailure:
    """A failed LP as a run saved it: the MPS file and its record."""

    mps: Path
    facts: dict[str, Any]
    study: dict[str, Any]

    @classmethod
    def read(cls, mps: Path) -> "SavedFailure":
        """Read a saved LP. Raises NothingToExplainError without one; other missing files reduce the detail."""
        if not mps.exists():
            raise NothingToExplainError(f"{mps} does not exist")
        try:
            check_untrusted(mps)
        except OSError as error:
            raise NothingToExplainError(f"{mps} cannot be read: {error.strerror}") from error
        return cls(mps, _json(mps.with_suffix(".json")), _json(mps.parent.parent / STUDY_FILE))

    @property
    def names(self) -> Dictionary:
        """Descriptions of columns and rows, with the names of this study's plants."""
        return Dictionary(self.study.get("entities", {}), self.facts.get("plant_of_pair", ()))

    def plain(self, limit: Limit) -> float:
        """Convert the value from the scaled LP to physical units."""
        scales = self.facts.get("row_scale" if limit.is_row else "column_scale", ())
        scale = float(scales[limit.index]) if limit.index < len(scales) else 1.0
        return limit.value / scale if limit.is_row else limit.value * scale


def explain_failure(path: Path) -> Explanation:
    """Explain a saved LP, or the newest one of an output directory."""
    saved = SavedFailure.read(_find(path))
    try:
        conflict = find_conflict(saved.mps)
    except UnreadableLpError as error:
        raise NothingToExplainError(str(error)) from error
    return Explanation(
        file=str(saved.mps),
        headline=_headline(saved, conflict),
        status=conflict.status,
        contradiction=tuple(_limits(saved, conflict.limits) if conflict.limits else _rising(saved, conflict)),
        missing=tuple(_missing(saved, conflict)),
        inputs=tuple(_inputs(saved, conflict)),
        advice=tuple(_advice(saved, conflict)),
        notes=() if (changed := changed_case(saved.mps.parent.parent)) is None else (changed,),
    )


def _find(path: Path) -> Path:
    if path.suffix == ".json" and path.is_file():
        return path.with_suffix(".mps")
    if not path.is_dir():
        return path
    folder = path / FAILURES if (path / FAILURES).is_dir() else path
    files = sorted(filter(Path.is_file, folder.glob("*.mps")), key=lambda file: (file.stat().st_mtime, file.name))
    if not files:
        raise NothingToExplainError(
            f"{path} has no saved LP: a run saves one in OUT/{FAILURES}/*.mps when a stage cannot be solved"
        )
    return files[-1]


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_stored_object(path)
    except (OSError, ValueError):
        return {}


def _headline(saved: SavedFailure, conflict: Conflict) -> str:
    stage = saved.facts.get("stage_id", "?")
    dates = next((entry for entry in saved.study.get("stages", ()) if entry.get("id") == stage), None)
    when = "" if dates is None else f" ({dates['start_date']} to {dates['end_date']})"
    where = f", {saved.facts['where']}" if "where" in saved.facts else ""
    if conflict.status == OPTIMAL:
        then = saved.facts.get("status", "not solved")
        return f"Stage {stage}{when}{where}: the LP was {then} in the run, and is solved from scratch now."
    return f"Stage {stage}{when}{where}: the LP is {conflict.status}."


def _limits(saved: SavedFailure, limits: Sequence[Limit]) -> Iterator[str]:
    """Describe conflicting limits, rows first; limits that differ by block only share a line, and so do all zeros."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    zeros: dict[str, list[str]] = {}
    for limit in limits:
        meaning = saved.names.row(limit.name) if limit.is_row else saved.names.column(limit.name)
        value = saved.plain(limit)
        if not limit.is_row and value == 0.0 and limit.side == "at least":
            _add(zeros, meaning.entity, meaning.words)
        else:
            _add(grouped, (meaning.words, meaning.entity, _condition(meaning, limit, value)), meaning.block)
    for (words, entity, condition), blocks in grouped.items():
        of = f" of {entity}" if entity else ""
        yield f"{words}{of}{_in_blocks(blocks)}{condition}"
    for entity, quantities in zeros.items():
        yield f"not below zero{' at ' + entity if entity else ''}: {', '.join(quantities)}"


def _add(groups: dict[Any, list[Any]], key: Any, entry: Any) -> None:
    entries = groups.setdefault(key, [])
    if entry is not None and entry not in entries:
        entries.append(entry)


def _condition(meaning: Meaning, limit: Limit, value: float) -> str:
    if meaning.kind == "water_balance":
        return f": storage and releases, less releases upstream, must be {value:.6g} hm3 (initial plus inflow)"
    if meaning.kind == "power_balance":
        return f": supply meets a load of {value:.6g} MW"
    unit = f" {meaning.unit}" if meaning.unit else ""
    return f": {limit.side} {value:.6g}{unit}"


def _in_blocks(blocks: Sequence[int]) -> str:
    if not blocks:
        return ""
    return f" in block{'s' * (len(blocks) > 1)} {', '.join(map(str, sorted(blocks)))}"


def _rising(saved: SavedFailure, conflict: Conflict) -> Iterator[str]:
    for limit in conflict.rising:
        meaning = saved.names.column(limit.name)
        of = f" of {meaning.entity}" if meaning.entity else ""
        block = "" if meaning.block is None else f" in block {meaning.block}"
        yield f"{meaning.words}{of}{block}"


def _missing(saved: SavedFailure, conflict: Conflict) -> Iterator[str]:
    for limit in conflict.violations:
        meaning = saved.names.row(limit.name)
        of = f" of {meaning.entity}" if meaning.entity else ""
        block = "" if meaning.block is None else f" in block {meaning.block}"
        amount = f"{saved.plain(limit):.6g} {meaning.unit}".strip()
        yield f"{amount} in the {meaning.words}{of}{block} ({'too little' if _is_short(limit) else 'too much'})"


def _is_short(limit: Limit) -> bool:
    """Return whether a balance lacks water: its right-hand side is less than what must be kept."""
    return limit.side == "at most" if limit.name.startswith("water_balance") else limit.side == "at least"


def _inputs(saved: SavedFailure, conflict: Conflict) -> Iterator[str]:
    """Yield the plants that take part in the contradiction, or the first few."""
    state, inflow = saved.facts.get("state", ()), saved.facts.get("inflow_m3s", ())
    involved = " ".join(_limits(saved, conflict.limits))
    names = [saved.names.hydro(index) for index in range(len(inflow))]
    indices = [index for index, name in enumerate(names) if name in involved] or list(range(len(names)))
    for index in indices[:MAX_PLANTS]:
        yield f"{names[index]}: starts with {state[index]:.6g} hm3, natural inflow {inflow[index]:.6g} m3/s"


def _advice(saved: SavedFailure, conflict: Conflict) -> Iterator[str]:
    kinds = {saved.names.row(limit.name).kind for limit in conflict.limits if limit.is_row}
    involved = {saved.names.column(limit.name).kind for limit in conflict.limits if not limit.is_row}
    if conflict.status == OPTIMAL:
        yield "numbers of very different size cause numerical trouble: look for huge costs and limits"
    if conflict.status == UNBOUNDED:
        yield "look for negative costs, or contract prices, without an upper limit on the quantity"
    if any(value < 0 for value in saved.facts.get("inflow_m3s", ())) and "water_balance" in kinds:
        yield "an inflow is negative: set `modeling.inflow_non_negativity.method` to `penalty` or `truncation`"
    if "water_balance" in kinds and "storage" in involved:
        yield "storage limits are hard: check `reservoir` of the plant, and its initial storage"
    if any(kind.startswith("generic") for kind in kinds):
        yield "a generic constraint without slack is hard: give it a penalty, or check its bounds"
    if "power_balance" in kinds:
        yield "check minimum generation of thermal plants and contracts, and the deficit of the bus"
