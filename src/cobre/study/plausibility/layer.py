"""The rules of plausibility, in the order in which they run, and the errors that only computed numbers show."""

from collections.abc import Callable

from cobre.core.case import Case
from cobre.io.constraints.reading import FILE as CONSTRAINTS
from cobre.io.findings.problems import Layer, Problems
from cobre.io.validation.layer_findings import Findings, named, with_ids
from cobre.sddp.resolved.generic_rows import GenericRowResolver
from cobre.sddp.resolved.resolve import resolve
from cobre.stochastic.model import NoiseModel
from cobre.study.plausibility import adequacy, names, prices, water
from cobre.study.plausibility.expected import Expected, expected_numbers

Rule = Callable[[Case, Expected, Findings], None]
RULES: tuple[Rule, ...] = (*names.RULES, *adequacy.RULES, *water.RULES, *prices.RULES)


def check_divisions(case: Case, problems: Problems) -> None:
    """Add an error for each generic constraint with a divisor that parameters make 0 in some stage."""
    stages: dict[tuple[str, str], list[int]] = {}
    rows = GenericRowResolver(case)
    for stage in case.horizon.stages:
        for constraint, divisor in rows.divisions_by_zero(stage):
            stages.setdefault((named("constraint", constraint), divisor), []).append(stage.id)
    for (entity, divisor), ids in stages.items():
        message = f"something is divided by 0 in {with_ids('stage', sorted(set(ids)))}: by a sum with {divisor}"
        remedy = "other values of these parameters, or no row of bounds for these stages"
        problems.error(Layer.MEANING, CONSTRAINTS, entity, "expression", message, remedy)


def check_plausibility(case: Case, noise: NoiseModel, problems: Problems) -> None:
    """Add a warning for everything that is allowed and looks like a mistake. The case must be without errors."""
    expected = expected_numbers(resolve(case), noise)
    findings = Findings(Layer.PLAUSIBILITY, problems)
    for rule in RULES:
        rule(case, expected, findings)
