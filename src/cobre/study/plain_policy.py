"""A stored policy as dictionaries and lists, for scripts that look into cuts."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from cobre.io.policy_file import PolicyData, PolicyMetadata, StageCuts, read_policy
from cobre.study.policy_store import policy_file

_STORAGE, _INFLOW_LAG = 0, 1


def plain_policy(folder: Path) -> dict[str, Any]:
    """`metadata` and `stage_cuts`; cuts are in $, whatever the unit is in which they are stored."""
    data = read_policy(policy_file(folder))
    return {"metadata": _metadata(data), "stage_cuts": _stage_cuts(data), "stage_bases": []}


def _metadata(data: PolicyData) -> dict[str, Any]:
    metadata = data.metadata
    ids = metadata.stage_ids
    return {
        "software": "cobre",
        "num_stages": len(ids),
        "state_names": list(metadata.state_names),
        "stage_start_dates": list(metadata.stage_start_dates),
        "stage_end_dates": list(metadata.stage_end_dates),
        "graph_manifest": {
            "n_pools": len(ids),
            "nodes": [{"id": id_, "stage_id": id_, "pool_id": place} for place, id_ in enumerate(ids)],
            "edges": [
                {"source_id": source, "target_id": target, "probability": 1.0} for source, target in pairwise(ids)
            ],
        },
        "producer": {
            "completed_iterations": metadata.iterations,
            "final_lower_bound": metadata.facts.get("lower_bound"),
            "best_upper_bound": metadata.facts.get("upper_bound"),
            "cost_scale_factor": metadata.cost_scale,
            "rng_seed": metadata.seeds.get("tree_seed"),
        },
    }


def _stage_cuts(data: PolicyData) -> list[dict[str, Any]]:
    metadata = data.metadata
    return [
        {
            "stage_id": stage_id,
            "graph_stage_id": stage_id,
            "node_id": stage_id,
            "state_dimension": cuts.coefficients.shape[1],
            "populated_count": len(cuts.intercepts),
            "cost_scale_factor": metadata.cost_scale,
            "entity_manifest": [_entity(name) for name in metadata.state_names],
            "cuts": _cuts(cuts, metadata),
        }
        for stage_id, cuts in zip(metadata.stage_ids, data.stages, strict=True)
    ]


def _cuts(stage: StageCuts, metadata: PolicyMetadata) -> list[dict[str, Any]]:
    intercepts = (stage.intercepts * metadata.cost_scale).tolist()
    coefficients = (stage.coefficients * metadata.cost_scale).tolist()
    return [
        {
            "cut_id": slot,
            "slot_index": slot,
            "iteration": int(stage.iteration[slot]),
            "forward_pass_index": int(stage.forward_pass[slot]),
            "intercept": intercept,
            "coefficients": row,
            "is_active": bool(stage.is_active[slot]),
        }
        for slot, (intercept, row) in enumerate(zip(intercepts, coefficients, strict=True))
    ]


def _entity(state_name: str) -> dict[str, Any]:
    """`storage:3` is the volume of hydro 3, `inflow_lag2:3` its inflow two stages before."""
    kind, _, id_ = state_name.partition(":")
    lag = int(kind.removeprefix("inflow_lag")) if kind.startswith("inflow_lag") else 0
    return {
        "entity_type": _INFLOW_LAG if lag else _STORAGE,
        "entity_id": int(id_),
        "subindex": lag,
        "was_active": True,
    }
