"""Sources of scenarios: seeds, years and histories that the schemes need."""

import numpy as np

from cobre.core.case import Case
from cobre.core.config import ScenarioSource
from cobre.io.file_names import CONFIG_FILE
from cobre.io.input_files.stages_file import FILE as STAGES_FILE
from cobre.io.validation.layer_findings import Findings, Rule, listed, with_ids
from cobre.io.validation.scenarios.scenario_dimensions import scenario_sources

NEEDS_SEED = ("out_of_sample", "external")


def seeds(case: Case, findings: Findings) -> None:
    """The schemes out_of_sample and external need a seed."""
    for section, source in scenario_sources(case).items():
        drawn = [name for name in ("inflow", "load", "ncs") if getattr(source, name) in NEEDS_SEED]
        if drawn and source.seed is None:
            message = f"is missing, but the scheme of {', '.join(drawn)} draws scenarios of its own"
            findings.error(CONFIG_FILE, "", f"{section}.seed", message, "a whole number")


def histories(case: Case, findings: Findings) -> None:
    """The historical scheme needs inflow_history.parquet with the chosen years."""
    years = _years_of_history(case)
    for section, source in scenario_sources(case).items():
        if source.inflow == "historical" and not years:
            message = "is historical, but there is no history"
            findings.error(CONFIG_FILE, "", f"{section}.inflow.scheme", message, "add scenarios/inflow_history.parquet")
        elif source.inflow == "historical":
            _check_years(section, source, years, findings)
        elif source.historical_years is not None:
            message = "has no effect: the scheme of inflow is not historical"
            findings.warn(CONFIG_FILE, "", f"{section}.historical_years", message)


def _years_of_history(case: Case) -> set[int]:
    table = case.scenarios.inflow_history
    if table is None:
        return set()
    return {int(year) + 1970 for year in np.unique(table["start_date"].astype("datetime64[Y]").astype(int))}


def _check_years(section: str, source: ScenarioSource, years: set[int], findings: Findings) -> None:
    missing = set(source.historical_years or ()) - years
    if missing:
        message = f"the history has no year {listed(missing)}"
        findings.error(
            CONFIG_FILE, "", f"{section}.historical_years", message, f"years from {min(years)} to {max(years)}"
        )


def historical_residuals(case: Case, findings: Findings) -> None:
    """Openings from historical residuals need a history of inflows."""
    asking = [stage.id for stage in case.horizon.stages if stage.sampling_method == "historical_residuals"]
    if asking and not _years_of_history(case):
        message = f"is historical_residuals in {with_ids('stage', asking)}, but there is no history"
        findings.error(STAGES_FILE, "", "sampling_method", message, "add scenarios/inflow_history.parquet")


RULES: tuple[Rule, ...] = (seeds, histories, historical_residuals)
