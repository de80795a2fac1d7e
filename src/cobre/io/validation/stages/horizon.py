"""The horizon: dates, transitions, rates, risk."""

from itertools import pairwise

from cobre.core.case import Case
from cobre.core.temporal import PreStudyStage, Stage
from cobre.io.input_files.stages_file import FILE
from cobre.io.validation.layer_findings import Findings, Rule


def dates_in_order(case: Case, findings: Findings) -> None:
    """Stages end after they start, and follow one another."""
    stages: list[Stage | PreStudyStage] = [*case.horizon.pre_study_stages, *case.horizon.stages]
    for stage in stages:
        if stage.end_date <= stage.start_date:
            message = f"is {stage.end_date}, not after start_date, which is {stage.start_date}"
            findings.error(FILE, f"stage {stage.id}", "end_date", message, "the first day after the stage")
    for before, after in pairwise(case.horizon.stages):
        _check_succession(before, after, findings)


def _check_succession(before: Stage, after: Stage, findings: Findings) -> None:
    entity = f"stage {after.id}"
    if after.end_date <= before.end_date:
        message = f"is {after.end_date}, but stage {before.id} ends on {before.end_date}"
        findings.error(FILE, entity, "end_date", message, "stages in order of time")
    elif after.start_date < before.end_date:
        message = (
            f"is {after.start_date}, but stage {before.id} ends on {before.end_date}: days that both stages have count "
            "twice"
        )
        findings.warn(FILE, entity, "start_date", message)
    elif after.start_date > before.end_date:
        message = (
            f"is {after.start_date}, but stage {before.id} ends on {before.end_date}: days between them are not studied"
        )
        findings.warn(FILE, entity, "start_date", message)


def pre_study_stages_before_the_study(case: Case, findings: Findings) -> None:
    """Pre-study stages end before the study starts."""
    if not case.horizon.stages:
        return
    start = case.horizon.stages[0].start_date
    for stage in case.horizon.pre_study_stages:
        if stage.end_date > start:
            message = f"is {stage.end_date}, after the study starts on {start}"
            findings.error(FILE, f"pre-study stage {stage.id}", "end_date", message, f"{start} or earlier")


def discount_rates(case: Case, findings: Findings) -> None:
    """Annual discount rates must not be negative."""
    graph = case.horizon.policy_graph
    findings.demand_not_negative(graph.annual_discount_rate, FILE, "", "policy_graph.annual_discount_rate")
    for edge in graph.transitions:
        if edge.annual_discount_rate_override is not None:
            entity = f"transition {edge.source_id} -> {edge.target_id}"
            rate = edge.annual_discount_rate_override
            findings.demand_not_negative(rate, FILE, entity, "annual_discount_rate_override")
    for stage in case.horizon.stages:
        if stage.annual_discount_rate_override is not None:
            rate = stage.annual_discount_rate_override
            findings.demand_not_negative(rate, FILE, f"stage {stage.id}", "annual_discount_rate_override")


def risk_measures(case: Case, findings: Findings) -> None:
    """CVaR: alpha above 0 and at most 1, lambda from 0 to 1."""
    for stage in case.horizon.stages:
        if stage.risk is None:
            continue
        if not 0 < stage.risk.alpha <= 1:
            message = f"is {stage.risk.alpha:g}"
            findings.error(FILE, f"stage {stage.id}", "risk_measure.cvar.alpha", message, "above 0 and at most 1")
        if not 0 <= stage.risk.lambda_ <= 1:
            message = f"is {stage.risk.lambda_:g}"
            findings.error(FILE, f"stage {stage.id}", "risk_measure.cvar.lambda", message, "between 0 and 1")


def sizes_of_sobol_sets(case: Case, findings: Findings) -> None:
    """Warn of Sobol sets whose size is not a power of 2."""
    for stage in case.horizon.stages:
        count = stage.num_openings or 0
        if stage.sampling_method == "qmc_sobol" and count & (count - 1):
            message = f"is {count}: Sobol points are balanced only when their number is a power of 2"
            findings.warn(FILE, f"stage {stage.id}", "num_openings", message)


RULES: tuple[Rule, ...] = (
    dates_in_order,
    pre_study_stages_before_the_study,
    discount_rates,
    risk_measures,
    sizes_of_sobol_sets,
)
