"""The layers and their rules, in the order in which they run."""

from contextlib import suppress

from cobre.core.case import Case
from cobre.io.findings.problems import Layer, Problems
from cobre.io.validation import references
from cobre.io.validation.generic_constraints import generic_dimensions, generic_meaning, generic_references
from cobre.io.validation.layer_findings import NO_ENTITY, Findings, Rule
from cobre.io.validation.plants import (
    cascade,
    commitments,
    limits,
    plant_dimensions,
    prices,
    production,
    storage,
    tailrace_curves,
    travel_times,
)
from cobre.io.validation.scenarios import correlation, inflows, initial_lags, sampling, scenario_dimensions
from cobre.io.validation.stages import graph, horizon, policies, stage_dimensions, stated_twice, stopping
from cobre.io.validation.tables import override_values, table_dimensions, table_references

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
            *stated_twice.RULES,
        ),
    ),
)
ORDER = tuple(Layer)


def check_case(case: Case, problems: Problems) -> None:
    """Add all problems. After an error of an earlier layer, rules are still run as far as the invalid part allows."""
    for layer, rules in LAYERS:
        if _has_errors_before(layer, problems):
            _check_the_rest(case, layer, rules, problems)
        else:
            findings = Findings(layer, problems)
            for rule in rules:
                rule(case, findings)


def _check_the_rest(case: Case, layer: Layer, rules: tuple[Rule, ...], problems: Problems) -> None:
    """Run a rule on an invalid case; an exception, such as for an unknown bus, means that it cannot be checked."""
    unknown = _unknown_entities(problems)
    for rule in rules:
        found = Problems()
        with suppress(LookupError, StopIteration, ValueError):
            rule(case, Findings(layer, found))
            problems.take(problem for problem in found if problem.entity.partition(",")[0] not in unknown)


def _unknown_entities(problems: Problems) -> set[str]:
    """Entities such as `hydro 9` that rows name and no file declares: further problems with them are not reported."""
    return {
        problem.message.removeprefix(NO_ENTITY) for problem in problems.errors if problem.message.startswith(NO_ENTITY)
    }


def _has_errors_before(layer: Layer, problems: Problems) -> bool:
    return any(ORDER.index(problem.layer) < ORDER.index(layer) for problem in problems.errors)
