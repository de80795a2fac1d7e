"""References of tables: rows name entities, unit groups and stages that exist."""

import numpy as np

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, distinct, listed
from cobre.io.validation.tables.case_tables import (
    CLASS_OF_COLUMN,
    Ids,
    declared_ids,
    override_tables,
    production_tables,
    scenario_tables,
)

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


RULES: tuple[Rule, ...] = (entities_of_rows, unit_groups_of_rows, stages_of_overrides, stages_of_scenarios)
