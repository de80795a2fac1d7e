"""Columns and rows of a stage's LP in words: `turbined[3,0]` is the flow through the turbines of a plant in a block."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cobre.records import dataclass

_NAME = re.compile(r"(?P<kind>[^\[\]]+)(\[(?P<indices>[\d,]+)\])?$")
_PLANE = re.compile(r"plane_(\d+)$")
_GENERIC = re.compile(r"generic_\d+_(.*)$")
HYDRO, PAIR = "hydros", "pairs"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column or row is; `entities` names the list of study.json that its first index counts."""

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
    """What a name means. block: None where it is about the whole stage."""

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
        """What a column of the LP means."""
        return self._meaning(name, COLUMNS)

    def row(self, name: str) -> Meaning:
        """What a row of the LP means; cuts and generic constraints are recognised by their names."""
        kind = name.partition("[")[0]
        if found := _PLANE.match(kind):
            return Meaning(kind, "production function", "MW", self._entity(PAIR, int(found[1])), _last_index(name))
        if found := _GENERIC.match(name):
            return Meaning(kind, f"generic constraint {found[1]}", "", "", None)
        if kind.startswith("cut"):
            return Meaning(kind, "cut of the cost-to-go", "$", "", None)
        return self._meaning(name, ROWS)

    def _meaning(self, name: str, kinds: Mapping[str, Kind]) -> Meaning:
        found = _NAME.match(name)
        kind = kinds.get(found["kind"]) if found else None
        if found is None or kind is None:
            return Meaning(name, name, "", "", None)
        indices = [int(part) for part in found["indices"].split(",")] if found["indices"] else []
        entity = self._entity(kind.entities, indices[0]) if kind.entities and indices else ""
        block = indices[-1] if kind.has_block and len(indices) > 1 else None
        return Meaning(found["kind"], kind.words, kind.unit, entity, block)

    def _entity(self, kind: str, index: int) -> str:
        if kind == PAIR:
            known = index < len(self._plant_of_pair)
            return self._entity(HYDRO, self._plant_of_pair[index]) if known else f"units {index}"
        entries = self._entities.get(kind, ())
        if index >= len(entries):
            return f"{_SINGULAR[kind]} number {index}"
        return f"{entries[index].get('name')} ({_SINGULAR[kind]} {entries[index].get('id')})"

    def hydro(self, index: int) -> str:
        """A hydro plant by its position in canonical order, with name and id."""
        return self._entity(HYDRO, index)


def _last_index(name: str) -> int | None:
    found = _NAME.match(name)
    return int(found["indices"].split(",")[-1]) if found and found["indices"] else None
