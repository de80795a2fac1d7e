"""The record of the study that a policy was trained for: study.json of a Cobre run, next to its policy.

Converters number plants by their position in a deck, so that hydro 100 of a monthly deck is another plant in the weekly
one. The record has the names of plants. Where these show that two studies number their plants differently, states of
the policy belong to the plants of the same name; otherwise to those of the same id, as for any other policy.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from cobre.core.arrays import Floats
from cobre.core.case import InflowObservation
from cobre.core.entities import Thermal
from cobre.core.hydro import Hydro
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass

RUN_RECORD = "study.json"  # next to a policy, or in the folder above


@dataclass(frozen=True, slots=True)
class PolicySource:
    """Plants of the study that a policy was trained for, by id, and inflows before it.

    volumes: hm3 of reservoirs that have one volume only.
    """

    hydros: Mapping[int, str]
    thermals: Mapping[int, str]
    volumes: Mapping[int, float]
    past: tuple[InflowObservation, ...] = ()


def source_of(policy_file: Path) -> PolicySource | None:
    """Return the record that a run wrote of its study; None without one, or if it is of another kind."""
    for folder in (policy_file.parent, policy_file.parent.parent):
        if (folder / RUN_RECORD).is_file():
            try:
                return _source(read_stored_object(folder / RUN_RECORD))
            except (OSError, ValueError, KeyError, TypeError):
                return None  # states are then matched by id, as for a policy without a record
    return None


def _source(record: Mapping[str, Any]) -> PolicySource:
    entities = record["entities"]
    names = {kind: {int(one["id"]): str(one["name"]) for one in entities[kind]} for kind in ("hydros", "thermals")}
    limits = {int(one["id"]): (one["min_storage_hm3"], one["max_storage_hm3"]) for one in entities["hydros"]}
    volumes = {id_: float(low) for id_, (low, high) in limits.items() if low == high}
    past = tuple(
        InflowObservation(id_, date.fromisoformat(lag["start_date"]), date.fromisoformat(lag["end_date"]), float(value))
        for lag in record.get("inflow_lags", ())
        for id_, value in zip(names["hydros"], lag["m3s"], strict=True)
    )
    return PolicySource(names["hydros"], names["thermals"], volumes, past)


def lag_records(periods: Sequence[tuple[date, date]], lags: Floats) -> list[dict[str, Any]]:
    """Record the inflows before a study: by lag the days, and m3/s of all hydros. lags: lag x hydro."""
    return [
        {"start_date": start.isoformat(), "end_date": end.isoformat(), "m3s": values}
        for (start, end), values in zip(periods, lags.tolist(), strict=True)
    ]


def new_ids(names: Mapping[int, str], plants: Sequence[Hydro] | Sequence[Thermal]) -> dict[int, int] | None:
    """Map ids of the policy's study to those of plants with the same names here; None if all ids are equal.

    They are the same if no name is found under another number: a plant that was renamed keeps its number then.
    """
    here = _unique({plant.id: plant.name for plant in plants})
    there = _unique(names)
    matches = {id_: here[key] for key, id_ in there.items() if key in here}
    return matches if any(old != new for old, new in matches.items()) else None


def _unique(names: Mapping[int, str]) -> dict[str, int]:
    """Map names, without case, spaces and punctuation, to ids; names that occur twice are left out."""
    ids_by_name: dict[str, list[int]] = {}
    for id_, name in names.items():
        ids_by_name.setdefault("".join(letter for letter in name.casefold() if letter.isalnum()), []).append(id_)
    return {key: ids[0] for key, ids in ids_by_name.items() if key and len(ids) == 1}


def can_store(hydro: Hydro) -> bool:
    """Return whether a plant has more than one volume, so that the value of its water matters."""
    return hydro.reservoir.max_storage_hm3 > hydro.reservoir.min_storage_hm3
