"""A stored policy as dictionaries and lists, for scripts that look into cuts."""

from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cobre.compat.run_metadata import instant
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT
from cobre.core.state_names import INFLOW_LAG, StateName
from cobre.io.output import read_results
from cobre.io.policies.cobre_python_policy import NO_DATE, STATE_KINDS
from cobre.io.policies.policy_file import VERSION, PolicyData, PolicyMetadata, StageCuts, find_policy_file, read_policy
from cobre.runs.files import CONVERGENCE, CONVERGENCE_FILE, TRAINING
from cobre.runs.stored import iteration_limit, stored_study

# What is said of seasons when nothing is: policies here do not keep them.
NO_SEASONS = {"cycle_code": 255, "n_seasons": 0, "hydro_orders": []}


def policy_dictionary(folder: Path) -> dict[str, Any]:
    """`metadata` and `stage_cuts`; cuts are in $, whatever the unit is in which they are stored.

    What only the run knows (versions, limits, its bounds) is there when the folder lies in its output directory.
    """
    file = find_policy_file(folder)
    data = read_policy(file)
    return {"metadata": _metadata(data, file), "stage_cuts": _stage_cuts(data), "stage_bases": []}


def _metadata(data: PolicyData, file: Path) -> dict[str, Any]:
    metadata, run = data.metadata, stored_study(file.parent.parent)
    ids = metadata.stage_ids
    return {
        "format_version": VERSION,
        "software": "cobre",
        "software_version": run.get("versions", {}).get("cobre"),
        "created_at": instant(file.stat().st_mtime),
        "num_stages": len(ids),
        "state_names": list(metadata.state_names),
        "stage_start_dates": list(metadata.stage_start_dates),
        "stage_end_dates": list(metadata.stage_end_dates),
        "graph_manifest": {
            "n_pools": len(ids),
            "nodes": [{"id": id_, "stage_id": id_, "pool_id": index} for index, id_ in enumerate(ids)],
            "edges": [
                {"source_id": source, "target_id": target, "probability": 1.0} for source, target in pairwise(ids)
            ],
        },
        "season_manifest": NO_SEASONS,
        "producer": _producer(data, run.get("config", {}), file),
    }


def _producer(data: PolicyData, config: dict[str, Any], file: Path) -> dict[str, Any]:
    metadata = data.metadata
    loaded = [from_elsewhere(stage) for stage in data.stages]
    return {
        "completed_iterations": metadata.iterations,
        "final_lower_bound": metadata.facts.get("lower_bound"),
        "best_upper_bound": metadata.facts.get("upper_bound"),
        "max_iterations": iteration_limit(config),
        "forward_passes": _forward_passes(data),
        "warm_start_cuts": max(loaded, default=0),
        "warm_start_counts": loaded,
        "cost_scale_factor": metadata.cost_scale,
        "rng_seed": metadata.seeds.get("tree_seed"),
        "total_visited_states": 0,
        "training_block_mode": None,
        "training_block_mode_per_stage": [],
        "lower_bound_history": _bounds(file.parent.parent),
    }


def _forward_passes(data: PolicyData) -> int:
    return max((int(stage.forward_pass.max(initial=-1)) for stage in data.stages), default=-1) + 1


def from_elsewhere(stage: StageCuts) -> int:
    """Cuts that were there before the first iteration."""
    return int(np.count_nonzero(stage.iteration == 0))


def _bounds(run: Path) -> list[float]:
    """Lower bounds by iteration; empty where the run is missing."""
    if not (run / TRAINING / CONVERGENCE_FILE).exists():
        return []
    bounds: list[float] = read_results(run / TRAINING, [CONVERGENCE])[CONVERGENCE]["lower_bound"].to_pylist()
    return bounds


def _stage_cuts(data: PolicyData) -> list[dict[str, Any]]:
    metadata, passes = data.metadata, _forward_passes(data)
    return [
        {
            "stage_id": metadata.stage_ids[index],
            "graph_stage_id": metadata.stage_ids[index],
            "node_id": metadata.stage_ids[index],
            "state_dimension": cuts.coefficients.shape[1],
            "capacity": len(cuts.intercepts),
            "warm_start_count": from_elsewhere(cuts),
            "populated_count": len(cuts.intercepts),
            "cost_scale_factor": metadata.cost_scale,
            "priced_state_date": number_of_day(metadata.stage_end_dates[index]),
            "entity_manifest": entity_manifest(metadata, index),
            "cuts": _cuts(cuts, metadata.cost_scale, passes),
        }
        for index, cuts in enumerate(data.stages)
    ]


def _cuts(stage: StageCuts, cost_scale: float, forward_passes: int) -> list[dict[str, Any]]:
    intercepts = (stage.intercepts * cost_scale).tolist()
    coefficients = (stage.coefficients * cost_scale).tolist()
    iterations, passes = stage.iteration.tolist(), stage.forward_pass.tolist()
    return [
        {
            "cut_id": iterations[slot] * forward_passes + passes[slot],
            "slot_index": slot,
            "iteration": iterations[slot],
            "forward_pass_index": passes[slot],
            "intercept": intercept,
            "coefficients": row,
            "is_active": bool(stage.is_active[slot]),
        }
        for slot, (intercept, row) in enumerate(zip(intercepts, coefficients, strict=True))
    ]


def entity_manifest(metadata: PolicyMetadata, stage: int) -> list[dict[str, Any]]:
    """What the entries of the state are that leaves a stage, given by its position."""
    return [_entity(name, stage, metadata) for name in metadata.state_names]


def _entity(state_name: str, stage: int, metadata: PolicyMetadata) -> dict[str, Any]:
    name, read, start, end = StateName.parse(state_name), NO_DATE, NO_DATE, NO_DATE
    number = name.distance
    if name.kind == INFLOW_LAG and stage + 1 >= number:
        read = number_of_day(metadata.stage_start_dates[stage + 1 - number])
    elif name.kind in (COMMITMENT, IN_TRANSIT) and stage + number < len(metadata.stage_ids):
        start = number_of_day(metadata.stage_start_dates[stage + number])
        end = number_of_day(metadata.stage_end_dates[stage + number])
    return {
        "entity_type": STATE_KINDS.index(name.kind),
        "entity_id": name.entity_id,
        "subindex": number,
        "was_active": True,
        "reference_date": read,
        "interval_start": start,
        "interval_end": end,
    }


def number_of_day(day: str) -> int:
    """A date as a number: 20300131 for `2030-01-31`."""
    return int(date.fromisoformat(day).strftime("%Y%m%d")) if day else NO_DATE
