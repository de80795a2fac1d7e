"""Checks that need more than one file: references, dimensions, meaning. One module per subject.

`check_case` runs them all.
"""

from cobre.core.case import Case
from cobre.core.file_names import STAGES_FILE
from cobre.io.findings import Findings
from cobre.io.validation import (
    bounds,
    commitments,
    entities,
    generic_constraints,
    horizon,
    inflows,
    noise,
    policy_graph,
    production,
    settings,
    water,
)
from cobre.io.validation.references import Documents, check_references
from cobre.io.validation.rules import Rule, run_rules

GROUPS: tuple[tuple[Rule, ...], ...] = (
    (
        *horizon.DIMENSION_RULES,
        *bounds.DIMENSION_RULES,
        *inflows.DIMENSION_RULES,
        *water.DIMENSION_RULES,
        *noise.DIMENSION_RULES,
        *generic_constraints.DIMENSION_RULES,
    ),
    (
        *horizon.RULES,
        *policy_graph.RULES,
        *entities.RULES,
        *water.RULES,
        *bounds.RULES,
        *production.RULES,
        *noise.RULES,
        *inflows.RULES,
        *settings.RULES,
        *commitments.RULES,
        *generic_constraints.RULES,
    ),
    production.COMPUTED_RULES,
)
"""Rules that depend on the result of other rules are in a later group."""


def check_case(case: Case, documents: Documents, findings: Findings) -> None:
    """Check references between inputs, then their dimensions and meaning, and add findings.

    Files with errors so far were not decoded: rules that need them are left out, and their references are looked up in
    the parsed `documents`.
    """
    undecoded = frozenset(error.file for error in findings.errors)
    check_references(case, documents, undecoded, findings)
    if STAGES_FILE not in undecoded:
        horizon.at_least_two_stages(case, findings)
    if not case.horizon.stages:
        undecoded |= {STAGES_FILE}  # without stages there is nothing to check against
    run_rules(GROUPS, case, undecoded, findings)
