"""Checks that the stopping rules suit the study."""

from cobre.core.case import Case
from cobre.core.config import SimulationBased
from cobre.io.file_names import CONFIG_FILE
from cobre.io.validation.layer_findings import Findings, Rule, with_ids

FIELD = "training.stopping_rules"


def simulation_rule(case: Case, findings: Findings) -> None:
    """The rule `simulation` compares a mean with the lower bound: both must be expectations over the same noise."""
    config = case.config.training
    if not any(isinstance(rule, SimulationBased) for rule in config.stopping_rules):
        return
    averse = [stage.id for stage in case.horizon.stages if stage.risk is not None and not stage.risk.is_expectation]
    if averse:
        where = with_ids("stage", averse)
        message = f"the rule `simulation` compares means, but the risk measure is not the expectation in {where}"
        findings.error(
            CONFIG_FILE, "", FIELD, message, "upper_bound or bound_stalling, which are valid for any risk measure"
        )
    source = config.scenario_source
    others = [name for name in ("inflow", "load", "ncs") if getattr(source, name) != "in_sample"]
    if others:
        message = (
            f"the rule `simulation` simulates {' and '.join(others)} of other scenarios than the openings, "
            "to which the lower bound refers: it may stop too early or never"
        )
        findings.warn(CONFIG_FILE, "", FIELD, message, "bound_stalling, or in_sample forward passes")


RULES: tuple[Rule, ...] = (simulation_rule,)
