"""Limits of lines, and how often they are reached."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cobre.core.arrays import Floats
from cobre.report.entity_rows import EntityRows
from cobre.report.study_facts import StudyFacts

# A flow is at its limit if it is closer than this share of the limit, or of 1 MW.
TOLERANCE = 1e-6


def limits(study: StudyFacts, rows: EntityRows) -> tuple[Floats, Floats] | None:
    """L x T x B in MW, for the direct and the reverse direction; None if study.json has no limits."""
    known = {entry["id"]: entry for entry in study.line_limits if isinstance(entry.get("id"), int)}
    shape = (len(rows.entities), len(rows.stages), len(rows.blocks))
    direct, reverse = (
        np.array([_limits_of(known.get(id_, {}), name, shape[1:]) for id_ in rows.entities]).reshape(shape)
        for name in ("direct_mw", "reverse_mw")
    )
    return None if np.isnan(direct).all() else (direct, reverse)


def _limits_of(entry: Mapping[str, Any], name: str, shape: tuple[int, int]) -> Floats:
    """T x B in MW; NaN where the limit is unknown or infinite."""
    found = np.full(shape, np.nan)
    for stage, by_block in enumerate(entry.get(name, ())[: shape[0]]):
        for block, value in enumerate(by_block[: shape[1]]):
            found[stage, block] = np.nan if value is None else value
    return found


def limits_by_stage(study: StudyFacts, rows: EntityRows, hours: Floats) -> tuple[Floats, Floats]:
    """L x T in MW, for both directions: the mean weighted by hours; NaN where unknown."""
    found = limits(study, rows)
    if found is None:
        nothing = np.full((len(rows.entities), len(rows.stages)), np.nan)
        return nothing, nothing
    weights = hours / hours.sum(axis=1, keepdims=True)
    direct, reverse = ((np.where(weights > 0, values, 0.0) * weights).sum(axis=2) for values in found)
    return direct, reverse


def congestion(study: StudyFacts, rows: EntityRows, hours: Floats) -> Floats | None:
    """L x 2 x T: the share of hours, over scenarios, at the limit, in the direct and the reverse direction."""
    found = limits(study, rows)
    if found is None:
        return None
    weights = hours / hours.sum(axis=1, keepdims=True)
    sums = np.zeros((2, *found[0].shape[:2]))
    for grid in rows.grids("net_flow_mw"):
        flow = np.moveaxis(grid, 2, 1)  # S x L x T x B
        for direction, (sign, limit) in enumerate(zip((1.0, -1.0), found, strict=True)):
            sums[direction] += _share_at(sign * flow, limit, weights)
    return np.moveaxis(sums / len(rows.scenarios), 0, 1)


def _share_at(flow: Floats, limit: Floats, weights: Floats) -> Floats:
    """L x T: shares of hours at the limit, summed over scenarios. A limit of 0 (out of service) does not count."""
    slack = TOLERANCE * np.maximum(limit, 1.0)
    is_full = (flow >= limit - slack) & (limit > slack)
    added_up: Floats = (is_full * weights).sum(axis=(0, 3))
    return added_up
