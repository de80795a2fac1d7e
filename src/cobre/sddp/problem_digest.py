"""A digest of everything that cuts and bounds of a policy belong to: change any of it, and they may be wrong."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from cobre.sddp.problem import Problem
from cobre.solver.batches import CutRows


def problem_digest(problem: Problem, stage_ids: Sequence[int], end: CutRows | None) -> str:
    """SHA-256 over LPs, openings, risk measures, the initial state and the cuts after the last stage."""
    digest = hashlib.sha256()
    for stage, opening in zip(problem.stages, problem.openings, strict=True):
        feed(digest, stage.program)
        feed(digest, opening)
    risk = [(type(measure).__name__, _numbers(measure)) for measure in problem.risk]
    feed(digest, [problem.initial_state, problem.cost_scale, risk, list(stage_ids), end])
    if problem.tree is not None:
        feed(digest, problem.tree)
    return digest.hexdigest()


def feed(digest: Any, value: object) -> None:
    """Anything that a problem is made of, with its type, so that different things differ."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            digest.update(item.name.encode())
            feed(digest, getattr(value, item.name))
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            feed(digest, key)
            feed(digest, entry)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        digest.update(f"[{len(value)}]".encode())
        if value and all(type(entry) is str for entry in value):  # thousands of names in every LP: all at once
            digest.update("\0".join(value).encode())
            return
        for entry in value:
            feed(digest, entry)
    else:
        digest.update(f"{type(value).__name__}:{value!r};".encode())


def _numbers(measure: object) -> list[object]:
    """What a plugin was made with."""
    return [getattr(measure, item.name) for item in fields(measure)] if is_dataclass(measure) else []
