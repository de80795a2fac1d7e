"""Policies on disk: from memory to the file format and back, and whether a stored policy fits a study."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.file_names import POLICY_FILE
from cobre.core.stage_data import IN_TRANSIT
from cobre.core.state_names import kind_of
from cobre.errors import PolicyIncompatibleError
from cobre.io.policies.policy_file import (
    STAGE_HOURS,
    PolicyData,
    PolicyMetadata,
    StreamedStage,
    find_policy_file,
    parse_policy,
    read_policy_bytes,
    write_stages,
)
from cobre.io.storage.atomic import check_writable
from cobre.policy.object import Policy, pool_stage_ids, state_names
from cobre.sddp.cut_pool import CutPool, CutSet
from cobre.sddp.iteration_records import IterationRecord
from cobre.sddp.problem.problem import PreparedStudy

RISK_MEASURE = "risk_measure"  # the name of a fact in policy files: the plug-in that trained it


class PolicyMismatchError(PolicyIncompatibleError):
    """A policy that belongs to another study."""


def save_pool(folder: Path, study: PreparedStudy, pool: CutPool, history: Sequence[IterationRecord]) -> str:
    """Write the policy that a pool holds, without a copy of it in memory; returns the digest of the file."""
    check_writable(folder)
    stages = [_streamed(pool, stage) for stage in range(pool.num_stages)]
    return write_stages(folder / POLICY_FILE, _metadata(study, history[-1]), stages)


def _streamed(pool: CutPool, stage: int) -> StreamedStage:
    """Return the written cuts of a stage, in pieces for the file."""
    is_written = pool.written[stage] != 0
    count = int(is_written.sum())

    def pieces() -> Iterator[Floats]:
        first = 0
        for block in pool.blocks(stage, pool.count):
            yield block.coefficients[is_written[first : first + len(block.intercepts)]]
            first += len(block.intercepts)

    return StreamedStage(
        pool.dimension,
        pool.intercepts(stage)[is_written],
        pieces,
        pool.created[:count],
        pool.forward_pass[:count],
        pool.active[stage][is_written],
    )


def load_policy(path: Path) -> Policy:
    """Load a policy from its file, or from the folder that holds it."""
    file = find_policy_file(path)
    return decode_policy(file, read_policy_bytes(file))


def decode_policy(path: Path, content: bytes | memoryview) -> Policy:
    """Decode a policy from the content of its file."""
    return from_data(parse_policy(path, content))


def _metadata(study: PreparedStudy, last: IterationRecord) -> PolicyMetadata:
    by_id, config = {stage.id: stage for stage in study.case.horizon.stages}, study.case.config
    stage_ids = pool_stage_ids(study)
    stages, names = [by_id[stage_id] for stage_id in stage_ids], state_names(study)
    # Water travels on the axis of block hours, which dates do not give.
    hours = {STAGE_HOURS: [stage.hours for stage in stages]} if IN_TRANSIT in map(kind_of, names) else {}
    risk = {RISK_MEASURE: study.risk_plugin} if study.risk_plugin else {}
    return PolicyMetadata(
        state_names=tuple(names),
        stage_ids=tuple(stage_ids),
        stage_start_dates=tuple(stage.start_date.isoformat() for stage in stages),
        stage_end_dates=tuple(stage.end_date.isoformat() for stage in stages),
        entity_ids={"hydros": tuple(hydro.id for hydro in study.case.system.hydros)},
        iterations=last.iteration,
        seeds={"tree_seed": config.training.tree_seed},
        cost_scale=study.problem.cost_scale,
        facts={"lower_bound": last.lower_bound, "upper_bound": last.upper_bound, "problem": study.digest}
        | hours
        | risk,
    )


def from_data(data: PolicyData) -> Policy:
    """Restore a policy as it was when it was written."""
    metadata = data.metadata
    longest = max(data.stages, key=lambda stage: len(stage.intercepts))
    return Policy(
        stage_ids=metadata.stage_ids,
        state_names=metadata.state_names,
        cuts=tuple(CutSet(stage.intercepts, stage.coefficients) for stage in data.stages),
        active=tuple(stage.is_active for stage in data.stages),
        created=longest.iteration,
        forward_pass=longest.forward_pass,
        cost_scale=metadata.cost_scale,
        final_lower_bound=_bound(metadata.facts["lower_bound"]),
        final_upper_bound=_bound(metadata.facts["upper_bound"]),
        iterations=metadata.iterations,
        problem=str(metadata.facts.get("problem", "")),
        risk_measure=str(metadata.facts.get(RISK_MEASURE, "")),
    )


def _bound(value: float | None) -> float:
    """Return the bound of a policy; NaN where its producer gave none."""
    return math.nan if value is None else float(value)


def fill_pool(pool: CutPool, policy: Policy, study: PreparedStudy) -> None:
    """Put a stored policy's cuts into an empty pool, as cuts that were there before the first iteration."""
    check_fit(policy, study)
    policy = with_states(policy, state_names(study))
    count = max((len(cuts.intercepts) for cuts in policy.cuts), default=0)
    if not count:
        return
    for stage, cuts in enumerate(policy.cuts):
        pool.ensure_components(stage, cuts.coefficients)
    pool.reserve_slots(0, count)
    rescale = policy.cost_scale / study.problem.cost_scale
    for stage, cuts in enumerate(policy.cuts):
        if len(cuts.intercepts):
            pool.write(
                stage, range(len(cuts.intercepts)), CutSet(cuts.intercepts * rescale, cuts.coefficients * rescale)
            )
            pool.active[stage, : len(cuts.intercepts)] = policy.active[stage]


def with_states(policy: Policy, expected: tuple[str, ...]) -> Policy:
    """Reorder the policy's states as a study has them, leaving out those that it lacks and no cut needs."""
    position_of = {name: at for at, name in enumerate(policy.state_names)}
    if policy.state_names == expected or not set(expected) <= set(position_of):
        return policy
    extra = [at for name, at in position_of.items() if name not in expected]
    if any(cuts.coefficients[:, extra].any() for cuts in policy.cuts):
        return policy
    order = [position_of[name] for name in expected]
    cuts = tuple(CutSet(cuts.intercepts, np.ascontiguousarray(cuts.coefficients[:, order])) for cuts in policy.cuts)
    return replace(policy, state_names=expected, cuts=cuts)


def _only_in(whose: str, names: Sequence[str], others: Sequence[str], max_named: int = 6) -> list[str]:
    """List the first few names that the others lack, and how many more there are."""
    missing = [name for name in names if name not in set(others)]
    more = f" and {len(missing) - max_named} more" if len(missing) > max_named else ""
    return [f"only in the {whose}: {', '.join(missing[:max_named])}{more}"] if missing else []


def check_fit(policy: Policy, study: PreparedStudy) -> None:
    """Raise when the states or the stages are others than the study's."""
    expected = state_names(study)
    if with_states(policy, expected).state_names != expected:
        stored, required = policy.state_names, expected
        differences = (*_only_in("policy", stored, required), *_only_in("study", required, stored))
        raise PolicyMismatchError(
            f"the policy has {len(policy.state_names)} state variables, the study {len(expected)} "
            f"({'; '.join(differences)}): it belongs to a study with other plants or another inflow model"
        )
    stage_ids = pool_stage_ids(study)
    if policy.stage_ids != stage_ids:
        raise PolicyMismatchError(f"the policy has the stages {policy.stage_ids}, the study has {stage_ids}")


def check_risk_measure(policy: Policy, study: PreparedStudy) -> None:
    """Raise PolicyMismatchError where cuts were made under a plug-in, and the study has another risk measure."""
    if policy.risk_measure != study.risk_plugin:
        trained, simulated = policy.risk_measure or "that of its case", study.risk_plugin or "that of the case"
        raise PolicyMismatchError(f"the policy was trained under the risk measure {trained}, the study has {simulated}")
