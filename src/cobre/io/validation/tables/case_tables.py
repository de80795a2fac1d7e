"""The tables of a case with their formats, and the entity classes of their id columns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.io.constraints.reading import BOUNDS
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES
from cobre.io.validation.layer_findings import Findings, Named, Rule, distinct, listed, repeats, with_ids
from cobre.records import dataclass

# The entity class of each id column.
CLASS_OF_COLUMN: Mapping[str, str] = {
    "hydro_id": "hydro",
    "bus_id": "bus",
    "ncs_id": "non-controllable source",
    "thermal_id": "thermal",
    "line_id": "line",
    "pumping_station_id": "pumping station",
    "contract_id": "contract",
    "constraint_id": "constraint",
}


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids that a case declares, by class, and its stages."""

    by_class: Mapping[str, frozenset[int]]
    stages: frozenset[int]
    pre_study_stages: frozenset[int]
    seasons: frozenset[int]


def declared_ids(case: Case) -> Ids:
    """The ids that each entity class declares, which other files may refer to."""
    system, horizon = case.system, case.horizon
    classes: dict[str, Sequence[Named]] = {
        "bus": system.buses,
        "line": system.lines,
        "thermal": system.thermals,
        "hydro": system.hydros,
        "non-controllable source": system.non_controllable_sources,
        "pumping station": system.pumping_stations,
        "contract": system.energy_contracts,
        "constraint": case.generic_constraints.constraints,
    }
    definitions = horizon.season_definitions
    return Ids(
        by_class={word: frozenset(entity.id for entity in entities) for word, entities in classes.items()},
        stages=frozenset(stage.id for stage in horizon.stages),
        pre_study_stages=frozenset(stage.id for stage in horizon.pre_study_stages),
        seasons=frozenset(season.id for season in definitions.seasons) if definitions else frozenset(),
    )


def scenario_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The tables of scenarios/ that the case has."""
    for name, form in SCENARIO_TABLES.items():
        table = getattr(case.scenarios, name)
        if table is not None:
            yield form, table


def override_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The tables of constraints/ that the case has, bounds of generic constraints included."""
    for name, form in OVERRIDE_TABLES.items():
        table = getattr(case.overrides, name)
        if table is not None:
            yield form, table
    if case.generic_constraints.bounds is not None:
        yield BOUNDS, case.generic_constraints.bounds


def production_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The Parquet tables of system/ that the case has, by file."""
    for name, form in PRODUCTION_TABLES.items():
        table = getattr(case.production, name)
        if table is not None:
            yield form, table


# Tables: no duplicate rows, a row for every stage, blocks that exist.


BY_ENTITY = {
    "inflow_seasonal_stats": "hydro_id",
    "load_seasonal_stats": "bus_id",
    "non_controllable_stats": "ncs_id",
    "inflow_annual_component": "hydro_id",
}


def no_scenario_row_twice(case: Case, findings: Findings) -> None:
    """The keys of a scenario table identify its rows."""
    for form, table in scenario_tables(case):
        if form.file != SCENARIO_TABLES["inflow_history"].file:  # windows may also overlap: checked with the histories
            _report_twice(form, form.keys, table, findings)


def no_plane_twice(case: Case, findings: Findings) -> None:
    """Planes, productivities and segments of tailrace curves are given once."""
    for name in ("hyperplanes", "energy_productivity", "tailrace_curves"):
        table = getattr(case.production, name)
        if table is not None:
            form = PRODUCTION_TABLES[name]
            _report_twice(form, form.keys, table, findings)


def no_override_twice(case: Case, findings: Findings) -> None:
    """A column of a table of overrides is given once for an entity, stage and block."""
    for form, table in override_tables(case):
        numbers = [column.name for column in form.columns if column.kind == "number"]
        for column in numbers:
            given = ~np.isnan(table[column])
            _report_twice(form, form.keys, {key: table[key][given] for key in form.keys}, findings, column)


def _report_twice(form: TableFormat, keys: Sequence[str], table: Table, findings: Findings, column: str = "") -> None:
    """Report duplicate rows; rows are sorted by their keys, so that duplicates are adjacent."""
    again = np.flatnonzero(repeats([table[key] for key in keys]))
    rows = zip(*(table[key][again].tolist() for key in keys), strict=True)
    for row, count in Counter(rows).items():
        findings.error(form.file, _row_label(keys, row), column, f"appears {count + 1} times", "keep one of them")


def _row_label(keys: Sequence[str], row: Iterable[int]) -> str:
    given = ((key.removesuffix("_id"), value) for key, value in zip(keys, row, strict=True))
    return ", ".join(f"{key} {value}" for key, value in given if value != ABSENT_ID)


def statistics_of_every_stage(case: Case, findings: Findings) -> None:
    """An entity with statistics has them for all stages; without any, its inflow or load is 0."""
    stages = {stage.id for stage in case.horizon.stages}
    for name, column in BY_ENTITY.items():
        table = getattr(case.scenarios, name)
        if table is None or _has_all_stages(table, column, stages):
            continue
        found: dict[int, set[int]] = {}
        for entity_id, stage_id in distinct(table, column, "stage_id"):
            found.setdefault(entity_id, set()).add(stage_id)
        for entity_id, present in found.items():
            missing = stages - present
            if missing:
                entity = f"{column.removesuffix('_id')} {entity_id}"
                message = f"there is no row for {with_ids('stage', missing)}"
                findings.error(SCENARIO_TABLES[name].file, entity, "stage_id", message, "one row for each stage")


def _has_all_stages(table: Table, column: str, stages: set[int]) -> bool:
    """Whether every entity of a table, which is sorted, has a row for every stage."""
    is_study = np.isin(table["stage_id"], list(stages))
    entities = [table[column][is_study], table["stage_id"][is_study]]
    is_first = np.append(np.ones(min(1, len(entities[0])), np.bool_), ~repeats(entities))
    present = np.unique(entities[0][is_first], return_counts=True)
    return len(present[0]) == len(np.unique(table[column])) and bool((present[1] == len(stages)).all())


def plants_without_inflow(case: Case, findings: Findings) -> None:
    """Warn of plants without any row of inflow: they have none."""
    tables = case.scenarios
    if tables.inflow_history is not None or tables.external_inflow_scenarios is not None:
        return
    present = {hydro_id for (hydro_id,) in distinct(tables.inflow_seasonal_stats, "hydro_id")}
    for hydro in case.system.hydros:
        if hydro.id not in present:
            file = SCENARIO_TABLES["inflow_seasonal_stats"].file
            findings.warn(file, f"hydro {hydro.id} ({hydro.name})", "", "has no rows: its natural inflow is 0")


def lags_count_from_one(case: Case, findings: Findings) -> None:
    """Coefficients are given for lags 1, 2, ..., p."""
    lags: dict[tuple[int, int], list[int]] = {}
    for hydro_id, stage_id, lag in distinct(case.scenarios.inflow_ar_coefficients, "hydro_id", "stage_id", "lag"):
        lags.setdefault((hydro_id, stage_id), []).append(lag)
    for (hydro_id, stage_id), found in lags.items():
        if found != list(range(1, len(found) + 1)):
            file = SCENARIO_TABLES["inflow_ar_coefficients"].file
            message = f"the lags are {', '.join(str(lag) for lag in found)}"
            findings.error(file, f"hydro {hydro_id}, stage {stage_id}", "lag", message, "1, 2, ... without a gap")


def blocks_of_overrides(case: Case, findings: Findings) -> None:
    """A row for a block names one that its stage has."""
    blocks = {stage.id: len(stage.blocks) for stage in case.horizon.stages}
    for form, table in override_tables(case):
        if "block_id" not in table:
            continue
        # Most rows are for whole stages and name no block.
        of_blocks = {name: table[name][table["block_id"] != ABSENT_ID] for name in form.keys}
        for *_, stage_id, block_id in distinct(of_blocks, *form.keys):
            if not 0 <= block_id < blocks[stage_id]:
                message = f"stage {stage_id} has no block {block_id}"
                remedy = f"0 to {blocks[stage_id] - 1}, or null for all blocks"
                findings.error(form.file, f"rows of stage {stage_id}", "block_id", message, remedy)


DIMENSION_RULES: tuple[Rule, ...] = (
    no_scenario_row_twice,
    no_plane_twice,
    no_override_twice,
    statistics_of_every_stage,
    plants_without_inflow,
    lags_count_from_one,
    blocks_of_overrides,
)


# References of tables: rows name entities, unit groups and stages that exist.


# Rows of pre-study stages are allowed here: lags refer to them.
REACHES_BACK = ("inflow_seasonal_stats", "inflow_ar_coefficients", "inflow_annual_component")

MAY_NAME_OTHER_STAGES = (*REACHES_BACK, "load_seasonal_stats", "non_controllable_stats")


def entities_of_rows(case: Case, findings: Findings) -> None:
    """Entity ids in the rows of all tables exist."""
    ids = declared_ids(case)
    for form, table in (*scenario_tables(case), *override_tables(case), *production_tables(case)):
        for column in (column.name for column in form.columns if column.name in CLASS_OF_COLUMN):
            word = CLASS_OF_COLUMN[column]
            for (id_,) in distinct(table, column):
                findings.demand_known(ids.by_class[word], word, id_, form.file, f"rows of {word} {id_}", column)


def unit_groups_of_rows(case: Case, findings: Findings) -> None:
    """Bounds of unit groups name groups of the plant."""
    groups = {hydro.id: {group.id for group in hydro.unit_groups} for hydro in case.system.hydros}
    form = OVERRIDE_TABLES["hydro_unit_group_bounds"]
    for hydro_id, group_id in distinct(case.overrides.hydro_unit_group_bounds, "hydro_id", "hydro_unit_group_id"):
        if hydro_id in groups:  # other plants are reported already
            entity = f"rows of hydro {hydro_id}"
            known = groups[hydro_id]
            findings.demand_known(known, "unit group", group_id, form.file, entity, "hydro_unit_group_id")


def stages_of_overrides(case: Case, findings: Findings) -> None:
    """Overrides and production tables name stages of the study."""
    ids = declared_ids(case)
    for form, table in (*override_tables(case), *production_tables(case)):
        _demand_stages(form, table, ids, findings)


def stages_of_scenarios(case: Case, findings: Findings) -> None:
    """Scenario tables name stages of the study; statistics of other stages have no effect, with a warning."""
    ids = declared_ids(case)
    for form, table in scenario_tables(case):
        if form.file.removeprefix("scenarios/").removesuffix(".parquet") not in MAY_NAME_OTHER_STAGES:
            _demand_stages(form, table, ids, findings)
            continue
        unknown = {stage for (stage,) in distinct(table, "stage_id")} - ids.stages - ids.pre_study_stages
        if unknown:
            message = f"rows of stages that stages.json does not have are not used: {listed(unknown)}"
            findings.warn(form.file, "", "stage_id", message)


def _demand_stages(form: TableFormat, table: Table, ids: Ids, findings: Findings) -> None:
    if "stage_id" not in table:
        return
    stage_ids = np.unique(table["stage_id"])
    for stage_id in (int(value) for value in stage_ids if value != ABSENT_ID):
        findings.demand_known(ids.stages, "stage", stage_id, form.file, f"rows of stage {stage_id}", "stage_id")


REFERENCE_RULES: tuple[Rule, ...] = (entities_of_rows, unit_groups_of_rows, stages_of_overrides, stages_of_scenarios)
