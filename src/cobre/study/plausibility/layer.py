"""The rules of plausibility, in the order in which they run."""

from collections.abc import Callable

from cobre.core.case import Case
from cobre.io.findings.problems import Layer, Problems
from cobre.io.validation.layer_findings import Findings
from cobre.sddp.resolved.resolve import resolve
from cobre.stochastic.model import NoiseModel
from cobre.study.plausibility import adequacy, names, prices, water
from cobre.study.plausibility.expected import Expected, expected_numbers

Rule = Callable[[Case, Expected, Findings], None]
RULES: tuple[Rule, ...] = (*names.RULES, *adequacy.RULES, *water.RULES, *prices.RULES)


def check_plausibility(case: Case, noise: NoiseModel, problems: Problems) -> None:
    """Add a warning for everything that is allowed and looks like a mistake. The case must be without errors."""
    expected = expected_numbers(resolve(case), noise)
    findings = Findings(Layer.PLAUSIBILITY, problems)
    for rule in RULES:
        rule(case, expected, findings)
