"""Names used twice, and plants that can never run."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.io.input_files import entities
from cobre.io.validation.layer_findings import Findings, Named, listed, named
from cobre.study.plausibility.expected import Expected


def names_used_twice(case: Case, _: Expected, findings: Findings) -> None:
    """Results are read by name: two plants of one name cannot be told apart."""
    system = case.system
    classes: tuple[tuple[str, str, Sequence[Named]], ...] = (
        (entities.BUSES, "bus", system.buses),
        (entities.LINES, "line", system.lines),
        (entities.HYDROS, "hydro", system.hydros),
        (entities.THERMALS, "thermal", system.thermals),
        (entities.SOURCES, "non-controllable source", system.non_controllable_sources),
        (entities.STATIONS, "pumping station", system.pumping_stations),
        (entities.CONTRACTS, "contract", system.energy_contracts),
    )
    for file, word, members in classes:
        _check_names(file, word, members, findings)


def _check_names(file: str, word: str, members: Sequence[Named], findings: Findings) -> None:
    ids: dict[str, list[int]] = {}
    for entity in members:
        ids.setdefault(entity.name.strip().casefold(), []).append(entity.id)
    for entity in members:
        same = ids.pop(entity.name.strip().casefold(), [])
        if len(same) > 1:
            message = f"is used by {len(same)} entities: ids {listed(same)}"
            findings.warn(file, named(word, entity), "name", message, "a different name for each")


def plants_that_never_run(case: Case, expected: Expected, findings: Findings) -> None:
    """A plant whose maximum is 0 in every stage and block is either out of service or forgotten."""
    stages, system = expected.study.stages, case.system
    thermal = _largest([stage.thermal.max_mw for stage in stages])
    group = _largest([stage.group.max_generation_mw for stage in stages])
    hydro = np.bincount(expected.topology.group_hydro, group, len(system.hydros)).astype(np.float64)
    line = _largest([np.hstack([stage.line.direct_mw, stage.line.reverse_mw]) for stage in stages])
    _warn(entities.THERMALS, "thermal", system.thermals, thermal, "cannot run in any stage: its maximum is 0", findings)
    with_groups = [number for number, plant in enumerate(system.hydros) if plant.generation.max_generation_mw > 0]
    plants = [system.hydros[number] for number in with_groups]
    message = "has turbines, but cannot generate in any stage: its maximum is 0, or it is not in operation"
    _warn(entities.HYDROS, "hydro", plants, hydro[with_groups], message, findings)
    _warn(entities.LINES, "line", system.lines, line, "cannot carry anything in any stage: its limits are 0", findings)


def _largest(limits: Sequence[Floats]) -> Floats:
    """By entity: the largest value over all stages and blocks."""
    largest: Floats = np.array([values.max(axis=1) for values in limits]).max(axis=0)
    return largest


def _warn(file: str, word: str, members: Sequence[Named], largest: Floats, message: str, findings: Findings) -> None:
    for position in np.flatnonzero(largest <= 0.0).tolist():
        findings.warn(file, named(word, members[position]), "", message)


RULES = (names_used_twice, plants_that_never_run)
