"""The ways of water: no plant may receive its own water back, other than by pumping."""

from cobre.core.case import Case
from cobre.core.hydro import Hydro
from cobre.io.entities import HYDROS, STATIONS
from cobre.io.validation.findings import Findings, Rule, named


def no_circle(case: Case, findings: Findings) -> None:
    """Turbined, spilled and diverted water goes down, never round."""
    targets = {hydro.id: _targets(hydro) for hydro in case.system.hydros}
    circle = _find_circle(targets)
    if circle:
        way = " -> ".join(str(id_) for id_ in (*circle, circle[0]))
        message = f"water would go round: {way}"
        remedy = "change downstream_id or diversion.downstream_id of one of them"
        findings.error(HYDROS, f"hydros {', '.join(str(id_) for id_ in circle)}", "downstream_id", message, remedy)


def _targets(hydro: Hydro) -> list[int]:
    diverted = hydro.diversion.downstream_id if hydro.diversion else None
    return [target for target in (hydro.downstream_id, diverted) if target is not None]


def _find_circle(targets: dict[int, list[int]]) -> list[int]:
    """Take away plants from which water leaves for good, until none is left but those of circles; walk one of them."""
    left = dict(targets)
    while True:
        draining = [id_ for id_, ways in left.items() if not any(way in left for way in ways)]
        if not draining:
            break
        for id_ in draining:
            del left[id_]
    if not left:
        return []
    path = [min(left)]
    while True:
        step = next(way for way in left[path[-1]] if way in left)
        if step in path:
            return path[path.index(step) :]
        path.append(step)


def stations_join_two_reservoirs(case: Case, findings: Findings) -> None:
    """Pumping into the same reservoir would only burn power."""
    for station in case.system.pumping_stations:
        if station.source_hydro_id == station.destination_hydro_id:
            message = "is the same reservoir as source_hydro_id"
            findings.error(STATIONS, named("pumping station", station), "destination_hydro_id", message, "another one")


RULES: tuple[Rule, ...] = (no_circle, stations_join_two_reservoirs)
