"""Correlation: matrices that are correlation matrices."""

import numpy as np

from cobre.core.case import Case, CorrelationGroup
from cobre.io.input_files.correlation_file import FILE
from cobre.io.validation.layer_findings import Findings, Rule

SYMMETRY_TOLERANCE = 1e-10


def matrices(case: Case, findings: Findings) -> None:
    """Matrices are square and symmetric, with ones on the diagonal and entries from -1 to 1."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    for profile, groups in correlation.profiles.items():
        for group in groups:
            found = _wrong(group)
            if found:
                findings.error(FILE, f"profile {profile}, group {group.name}", "matrix", *found)


def _wrong(group: CorrelationGroup) -> tuple[str, str] | None:
    matrix, size = group.matrix, len(group.entities)
    if matrix.shape != (size, size):
        return f"has the shape {matrix.shape}, for {size} entities", f"{size} rows of {size} numbers"
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.size and asymmetry.max() > SYMMETRY_TOLERANCE:
        row, column = np.unravel_index(int(asymmetry.argmax()), matrix.shape)
        return f"is not symmetric at row {row}, column {column}", "the same number on both sides of the diagonal"
    if not np.allclose(np.diag(matrix), 1.0, rtol=0.0, atol=SYMMETRY_TOLERANCE):
        return "has diagonal entries other than 1", "1 on the diagonal"
    if np.abs(matrix).max(initial=0.0) > 1.0 + SYMMETRY_TOLERANCE:
        return f"has an entry of {matrix.flat[int(np.abs(matrix).argmax())]:g}", "entries between -1 and 1"
    return None


def one_class_in_a_group(case: Case, findings: Findings) -> None:
    """Inflows, loads and sources are not correlated with one another."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        for group in groups:
            classes = sorted({kind for kind, _ in group.entities})
            if len(classes) > 1:
                message = f"has entities of the classes {', '.join(classes)}"
                entity = f"profile {profile}, group {group.name}"
                findings.error(FILE, entity, "entities", message, "one class in a group")


def one_group_for_an_entity(case: Case, findings: Findings) -> None:
    """An entity appears at most once in a profile."""
    correlation = case.scenarios.correlation
    for profile, groups in correlation.profiles.items() if correlation else ():
        seen: set[tuple[str, int]] = set()
        for group in groups:
            for entity in group.entities:
                if entity in seen:
                    message = f"{entity[0]} {entity[1]} appears more than once in the profile"
                    findings.error(FILE, f"profile {profile}, group {group.name}", "entities", message, "once")
                seen.add(entity)


def a_profile_for_each_stage(case: Case, findings: Findings) -> None:
    """Stages that the schedule leaves out use the profile `default`, or the only one there is."""
    correlation = case.scenarios.correlation
    if correlation is None:
        return
    if not correlation.profiles:
        findings.error(FILE, "", "profiles", "there is none", "at least one profile, called default")
    elif "default" not in correlation.profiles:
        left_out = [stage.id for stage in case.horizon.stages if stage.id not in correlation.schedule]
        if left_out and len(correlation.profiles) > 1:
            message = f"stage {left_out[0]} has none, and no profile is called default"
            findings.error(FILE, "", "schedule", message, "a profile for each stage, or one called default")


RULES: tuple[Rule, ...] = (matrices, one_class_in_a_group, one_group_for_an_entity, a_profile_for_each_stage)
