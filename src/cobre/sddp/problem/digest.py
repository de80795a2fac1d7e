"""A digest of everything that cuts and bounds of a policy belong to: change any of it, and they may be wrong."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any, cast

import numpy as np

from cobre.core.config import CAME_LATER
from cobre.sddp.problem.problem import Problem
from cobre.solver.batches import CutRows


def problem_digest(problem: Problem, stage_ids: Sequence[int], boundary: CutRows | None) -> str:
    """SHA-256 over LPs, openings, risk measures, the initial state and the boundary cuts after the last stage.

    Names of dataclass fields are part of it: a renamed field keeps its old name here, or stored policies would count
    as policies of another problem.
    """
    digest = hashlib.sha256()
    for stage, opening in zip(problem.stages, problem.openings, strict=True):
        feed(digest, stage.program)
        _feed_fields(digest, {"realisations": opening.realisations, "order": opening.order, "rank": opening.position})
    risk = [(type(measure).__name__, _numbers(measure)) for measure in problem.risk]
    feed(digest, [problem.initial_state, problem.cost_scale, risk, list(stage_ids), boundary])
    if problem.tree is not None:
        feed(digest, problem.tree)
    return digest.hexdigest()


def feed(digest: Any, value: object) -> None:
    """Anything that a problem is made of, with its type, so that different things differ."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        whole = np.ascontiguousarray(value)
        digest.update(whole if whole.dtype.kind in "biuf" else whole.tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        _feed_fields(digest, {item.name: getattr(value, item.name) for item in fields(value) if _counts(item, value)})
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            feed(digest, key)
            feed(digest, entry)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        digest.update(f"[{len(value)}]".encode())
        if set(map(type, value)) == {str}:  # thousands of names in every LP: all at once
            digest.update("\0".join(cast("Sequence[str]", value)).encode())
            return
        for entry in value:
            feed(digest, entry)
    else:
        digest.update(f"{type(value).__name__}:{value!r};".encode())


def _counts(item: "Field[Any]", value: object) -> bool:
    """Whether a field is hashed: optional fields added later are skipped while None, so older digests stay valid."""
    return not (item.metadata.get(CAME_LATER) and getattr(value, item.name) is None)


def _feed_fields(digest: Any, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        digest.update(name.encode())
        feed(digest, value)


def _numbers(measure: object) -> Sequence[object]:
    """The fields of a risk measure, which its weights depend on: of a dataclass, or attributes by name, sorted."""
    if is_dataclass(measure):
        return [getattr(measure, item.name) for item in fields(measure)]
    state = object.__getstate__(measure)  # None, a dictionary, or one and another of slots
    parts = state if isinstance(state, tuple) else (state,)
    return sorted((name, value) for part in parts if part for name, value in part.items())
