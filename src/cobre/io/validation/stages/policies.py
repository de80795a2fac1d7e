"""The boundary policy of a case: its file can be read, and its cuts are for the last day and the plants of the case."""

from pathlib import Path

from cobre.core.case import Case
from cobre.core.state_names import STORAGE, kind_of, owner_of
from cobre.io.file_names import CONFIG_FILE
from cobre.io.policies.policy_file import PolicyFileError, PolicyMetadata, find_policy_file, read_policy
from cobre.io.policies.policy_source import PolicySource, can_store, new_ids, source_of
from cobre.io.validation.layer_findings import Findings, Rule

FIELD = "policy.boundary.path"


def boundary_policy(case: Case, findings: Findings) -> None:
    """The boundary policy has cuts for the day on which the study ends, with a storage state for each of its plants."""
    configured = case.config.policy.boundary
    if configured is None:
        return
    file = find_policy_file(Path(configured.path))
    try:
        metadata = read_policy(file).metadata
    except PolicyFileError as error:
        findings.error(
            CONFIG_FILE, "", FIELD, str(error), "the policy file of another study, its folder, or its output"
        )
        return
    day = case.horizon.stages[-1].end_date
    if metadata.stage_that_ends_on(day) is None:
        message = f"has no cost-to-go on {day}, where this study ends"
        findings.error(CONFIG_FILE, "", FIELD, message, f"its stages end on {', '.join(metadata.stage_end_dates)}")
    _check_plants(case, metadata, source_of(file), findings)


def _check_plants(case: Case, metadata: PolicyMetadata, source: PolicySource | None, findings: Findings) -> None:
    """Name the reservoirs that the policy does not value; of a plant with one volume nothing depends on it."""
    priced = {owner_of(name) for name in metadata.state_names if kind_of(name) == STORAGE}
    numbers = None if source is None else new_ids(source.hydros, case.system.hydros)
    if numbers is not None:
        priced = {str(new) for old, new in numbers.items() if str(old) in priced}
    for hydro in case.system.hydros:
        if str(hydro.id) not in priced and can_store(hydro):
            message = f"does not price the water of hydro {hydro.id} ({hydro.name})"
            findings.error(CONFIG_FILE, "", FIELD, message, "the policy of a study with the same plants")


RULES: tuple[Rule, ...] = (boundary_policy,)
