"""Openings from a file and external scenarios must be complete."""

from collections.abc import Callable, Sequence

import numpy as np

from cobre.core.case import Case, Table
from cobre.core.config import ScenarioSource
from cobre.core.temporal import Stage
from cobre.io.file_names import CONFIG_FILE
from cobre.io.input_files.table_formats import SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, listed
from cobre.io.validation.scenarios.noise_vector import noise_dimension, random_buses, random_sources
from cobre.records import dataclass

OPENINGS_FILE = SCENARIO_TABLES["noise_openings"].file


def scenario_sources(case: Case) -> dict[str, ScenarioSource]:
    """The scenario sources in use, by their section of config.json."""
    sources = {"training.scenario_source": case.config.training.scenario_source}
    if case.config.simulation.enabled and case.config.simulation.scenario_source is not None:
        sources["simulation.scenario_source"] = case.config.simulation.scenario_source
    return sources


def openings_from_a_file(case: Case, findings: Findings) -> None:
    """One number for each stage, opening and entry of the noise vector."""
    is_wanted = case.config.training.scenario_source.openings == "file"
    table = case.scenarios.noise_openings
    if not is_wanted:
        if table is not None:
            message = "is not used: training.scenario_source.openings in config.json does not ask for it"
            findings.warn(OPENINGS_FILE, "", "", message, 'set it to {"source": "file"}')
        return
    if table is None:
        message = "openings are read from a file, but there is none"
        findings.error(CONFIG_FILE, "", "training.scenario_source.openings", message, f"add {OPENINGS_FILE}")
        return
    dimension = noise_dimension(case)
    for stage in case.horizon.stages:
        _check_openings_of(stage, table, dimension, findings)


def _check_openings_of(stage: Stage, table: Table, dimension: int, findings: Findings) -> None:
    rows = table["stage_id"] == stage.id
    wanted = {"opening_index": stage.num_openings or 0, "entity_index": dimension}
    found = {column: np.unique(table[column][rows]) for column in wanted}
    is_right = {column: np.array_equal(found[column], np.arange(count)) for column, count in wanted.items()}
    for column, count in wanted.items():
        if not is_right[column]:
            message = f"there are {found[column].size} different ones, and {count} are needed"
            findings.error(OPENINGS_FILE, f"stage {stage.id}", column, message, f"0 to {count - 1}, each of them")
    if all(is_right.values()) and np.count_nonzero(rows) != dimension * wanted["opening_index"]:
        message = f"there are {np.count_nonzero(rows)} rows"
        remedy = f"{dimension * wanted['opening_index']}: each opening with each entry of the noise vector"
        findings.error(OPENINGS_FILE, f"stage {stage.id}", "", message, remedy)


@dataclass(frozen=True, slots=True)
class _Library:
    """External scenarios of one class, and the entities that they must contain."""

    scheme: str
    table: str
    column: str
    members: Callable[[Case], Sequence[int]]


def _hydros(case: Case) -> Sequence[int]:
    return [hydro.id for hydro in case.system.hydros]


LIBRARIES = (
    _Library("inflow", "external_inflow_scenarios", "hydro_id", _hydros),
    _Library("load", "external_load_scenarios", "bus_id", random_buses),
    _Library("ncs", "external_ncs_scenarios", "ncs_id", random_sources),
)


def external_scenarios(case: Case, findings: Findings) -> None:
    """A class with an external scheme has scenarios for every stage, each with every entity."""
    for library in LIBRARIES:
        users = [
            section for section, source in scenario_sources(case).items() if _scheme(source, library) == "external"
        ]
        table = getattr(case.scenarios, library.table)
        file = SCENARIO_TABLES[library.table].file
        if table is None or table["stage_id"].size == 0:
            for section in users:
                message = "the scheme is external, but there are no such scenarios"
                findings.error(CONFIG_FILE, "", f"{section}.{library.scheme}.scheme", message, f"add {file}")
        elif users:
            _check_library(case, library, table, file, findings)
        else:
            message = f"is not used: no scheme of `{library.scheme}` in config.json is external"
            findings.warn(file, "", "", message, 'set the scheme to "external" to use it')


def _scheme(source: ScenarioSource, library: _Library) -> str:
    return str(getattr(source, library.scheme))


def _check_library(case: Case, library: _Library, table: Table, file: str, findings: Findings) -> None:
    """Stages may differ in the number of their scenarios; the entities of a stage may not."""
    present = _counts(table, library.column)
    entity_ids = sorted({*library.members(case), *(key[0] for key in present)})
    for stage in case.horizon.stages:
        known = np.unique(table["scenario_id"][table["stage_id"] == stage.id])
        if not len(known):
            findings.error(file, f"stage {stage.id}", "scenario_id", "there is no scenario", "at least one")
            continue
        if not np.array_equal(known, np.arange(len(known))):
            message = f"the scenarios are {listed(known.tolist())}"
            findings.error(file, f"stage {stage.id}", "scenario_id", message, "0, 1, 2, ... without a gap")
            continue
        for entity_id in entity_ids:
            count = present.get((entity_id, stage.id), 0)
            if count != len(known):
                entity = f"{library.column.removesuffix('_id')} {entity_id}, stage {stage.id}"
                message = f"there are {count} of {len(known)} scenarios"
                findings.error(file, entity, "scenario_id", message, "the same scenarios for all entities")


def _counts(table: Table, column: str) -> dict[tuple[int, int], int]:
    """The number of rows by entity and stage; both are packed into one integer, because libraries are large."""
    codes = (table[column].astype(np.int64) << 32) + table["stage_id"]
    found, counts = np.unique(codes, return_counts=True)
    stages = ((found + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    keys = zip(((found - stages) >> 32).tolist(), stages.tolist(), strict=True)
    return dict(zip(keys, counts.tolist(), strict=True))


RULES: tuple[Rule, ...] = (openings_from_a_file, external_scenarios)
