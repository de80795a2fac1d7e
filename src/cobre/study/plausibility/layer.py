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


def check_generic_numbers(case: Case, problems: Problems) -> None:
    """Add an error for each generic constraint with a number that is divided by 0, or beyond 1e20, in some stage."""
    stages: dict[tuple[str, str, str, str], list[int]] = {}
    rows = GenericRowResolver(case)
    for stage in case.horizon.stages:
        for constraint, error in rows.unusable_numbers(stage):
            key = named("constraint", constraint), error.what, error.cause, error.remedy
            stages.setdefault(key, []).append(stage.id)
    for (entity, what, cause, remedy), ids in stages.items():
        message = f"{what} in {with_ids('stage', sorted(set(ids)))}: {cause}"
        problems.error(Layer.MEANING, CONSTRAINTS, entity, "expression", message, remedy)


def check_plausibility(case: Case, noise: NoiseModel, problems: Problems) -> None:
    """Add a warning for everything that is allowed and looks like a mistake. The case must be without errors."""
    expected = expected_numbers(resolve(case), noise)
    findings = Findings(Layer.PLAUSIBILITY, problems)
    for rule in RULES:
        rule(case, expected, findings)
