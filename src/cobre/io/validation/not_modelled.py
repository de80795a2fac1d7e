"""Features of the format that are not modelled yet, and that only the complete case shows."""

from collections.abc import Callable

from cobre.core.case import Case, Table
from cobre.io.file_names import STAGES_FILE
from cobre.io.findings.problems import Layer, Problems

FILE = STAGES_FILE


def refuse_what_is_not_modelled(case: Case, problems: Problems) -> None:
    """Add an error for each feature that would be ignored or computed wrongly."""
    for check in CHECKS:
        check(case, problems)


def has_inflow_lags(case: Case) -> bool:
    """Whether inflows depend on earlier ones: by coefficients that are given, or that will be estimated."""
    tables = case.scenarios
    if not case.system.hydros:
        return False
    if _has_rows(tables.inflow_ar_coefficients) or _has_rows(tables.inflow_annual_component):
        return True
    return _has_rows(tables.inflow_history) and case.config.estimation.max_order > 0


def _has_rows(table: Table | None) -> bool:
    return table is not None and next(iter(table.values())).size > 0


def _sampling_methods(case: Case, problems: Problems) -> None:
    if case.config.training.scenario_source.openings == "file":
        return
    for stage in case.horizon.stages:
        if stage.sampling_method == "selective":
            message = "openings cannot be drawn by the method `selective`"
            problems.error(Layer.MEANING, FILE, f"stage {stage.id}", "sampling_method", message, "saa, for example")


CHECKS: tuple[Callable[[Case, Problems], None], ...] = (_sampling_methods,)
