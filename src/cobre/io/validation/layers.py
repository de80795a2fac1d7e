"""The layers and their rules, in the order in which they run."""

from cobre.core.case import Case
from cobre.io.problems import Layer, Problems
from cobre.io.validation import (
    cascade,
    commitments,
    correlation,
    generic_dimensions,
    generic_meaning,
    generic_references,
    graph,
    horizon,
    inflows,
    initial_lags,
    limits,
    override_values,
    plant_dimensions,
    policies,
    prices,
    production,
    references,
    sampling,
    scenario_dimensions,
    stage_dimensions,
    stopping,
    storage,
    table_dimensions,
    table_references,
    tailrace_curves,
    travel_times,
)
from cobre.io.validation.findings import Findings, Rule

LAYERS: tuple[tuple[Layer, tuple[Rule, ...]], ...] = (
    (
        Layer.REFERENCES,
        (
            *references.RULES,
            *table_references.RULES,
            *generic_references.RULES,
        ),
    ),
    (
        Layer.DIMENSIONS,
        (
            *stage_dimensions.RULES,
            *table_dimensions.RULES,
            *plant_dimensions.RULES,
            *scenario_dimensions.RULES,
            *generic_dimensions.RULES,
        ),
    ),
    (
        Layer.MEANING,
        (
            *horizon.RULES,
            *graph.RULES,
            *cascade.RULES,
            *limits.RULES,
            *prices.RULES,
            *override_values.RULES,
            *production.RULES,
            *tailrace_curves.RULES,
            *correlation.RULES,
            *inflows.RULES,
            *initial_lags.RULES,
            *sampling.RULES,
            *stopping.RULES,
            *policies.RULES,
            *storage.RULES,
            *commitments.RULES,
            *travel_times.RULES,
            *generic_meaning.RULES,
        ),
    ),
)
ORDER = tuple(Layer)


def check_case(case: Case, problems: Problems) -> None:
    """Add all that is wrong. A layer runs only when the earlier ones found no error, for it relies on them."""
    for layer, rules in LAYERS:
        if _has_errors_before(layer, problems):
            return
        findings = Findings(layer, problems)
        for rule in rules:
            rule(case, findings)


def _has_errors_before(layer: Layer, problems: Problems) -> bool:
    return any(ORDER.index(problem.layer) < ORDER.index(layer) for problem in problems.errors)
