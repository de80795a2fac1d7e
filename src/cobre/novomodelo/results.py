"""Results of a run as novomodelo 0.19 gives them to scripts: `cobre.results`, with policies in its form.

That form has cuts in units of a cost scale, states and bases. `write_policy_checkpoint` is part of `cobre.novomodelo`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.compat.policy_checkpoint import write_policy_checkpoint as _write_in_currency
from cobre.errors import ValidationError
from cobre.results import (
    Stochastic,
    load_results,
    load_simulation,
    load_simulation_arrow,
    load_stochastic,
)
from cobre.results import load_convergence_arrow as _load_convergence_arrow
from cobre.results import load_policy as _load_policy

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Stochastic",
    "load_convergence",
    "load_convergence_arrow",
    "load_policy",
    "load_results",
    "load_simulation",
    "load_simulation_arrow",
    "load_stochastic",
]

# Fields that policies of Cobre do not have.
_NOT_KEPT: dict[str, Any] = {"state_history": None, "activity_counters": False, "basis_store_complete": False}


def load_convergence(output_dir: str | Path) -> list[dict[str, Any]]:
    """Return bounds and counts by iteration, as `load_convergence_arrow` has them."""
    rows: list[dict[str, Any]] = load_convergence_arrow(output_dir).to_pylist()
    return rows


def load_convergence_arrow(output_dir: str | Path) -> "pa.Table":
    """Return bounds and counts by iteration.

    `lazy_round_cap_hits` is 0: no lazy solve here stops at a number of rounds.
    """
    table = _load_convergence_arrow(output_dir)
    at = table.column_names.index("mean_rows_in_lp") + 1
    return table.add_column(at, "lazy_round_cap_hits", [[0] * table.num_rows])


def load_policy(output_dir: str | Path, policy_subdir: str = "policy") -> dict[str, Any]:
    """Return a policy as plain values: `metadata`, `stage_cuts`, `stage_bases` and `stage_states`.

    Cuts are in units of their stage's `cost_scale_factor`. The four values are the arguments of
    `cobre.novomodelo.write_policy_checkpoint`. Bases and states are empty: policies here do not keep them.
    """
    policy = _load_policy(output_dir, policy_subdir)
    policy["metadata"]["producer"] |= _NOT_KEPT
    return {
        "metadata": policy["metadata"],
        "stage_cuts": [_in_units(stage) for stage in policy["stage_cuts"]],
        "stage_bases": [],
        "stage_states": [],
    }


def _in_units(stage: dict[str, Any]) -> dict[str, Any]:
    scale = stage["cost_scale_factor"]
    cuts = [
        {name: value for name, value in cut.items() if name != "cut_id"}
        | {
            "intercept": cut["intercept"] / scale,
            "coefficients": [value / scale for value in cut["coefficients"]],
            "scored": False,
        }
        for cut in stage["cuts"]
    ]
    return stage | {"cuts": cuts}


# Policies from plain dictionaries, as `load_policy` returns them.

Plain = Mapping[str, Any]
RETIRED_OF_BASES = ("num_cut_rows", "num_columns", "num_rows")


def write_policy_checkpoint(
    path: str | Path,
    stage_cuts: Sequence[Plain],
    metadata: Plain,
    stage_bases: Sequence[Plain] | None = None,
    stage_states: Sequence[Plain] | None = None,
    inflow_lag_depth: int | None = None,
) -> None:
    """Write the folder of a policy; the arguments are as `cobre.novomodelo.results.load_policy` returns them.

    Cuts are in units of their stage's `cost_scale_factor`, which every stage must have. Bases and states are checked
    but not kept, and a warning says so: a simulation here finds its own bases.

    Raises ValidationError, a ValueError, for keys that 0.19 retired, for counts that contradict each other, and for
    dictionaries that make no policy.
    """
    problems = [
        *_retired(stage_cuts, stage_bases or ()),
        *_scale_problems(stage_cuts),
        *_producer_problems(metadata.get("producer") or {}, stage_bases or (), stage_states or ()),
    ]
    if problems:
        raise ValidationError("; ".join(problems))
    scale = stage_cuts[0]["cost_scale_factor"] if stage_cuts else 1.0
    in_currency = [_in_currency(stage, scale) for stage in stage_cuts]
    producer = {**(metadata.get("producer") or {}), "cost_scale_factor": scale}
    _write_in_currency(
        path, in_currency, {**metadata, "producer": producer}, stage_bases, stage_states, inflow_lag_depth
    )


def _in_currency(stage: Plain, stored_scale: float) -> dict[str, Any]:
    """Return the stage with its cuts in $, to be stored in units of `stored_scale`."""
    scale = stage["cost_scale_factor"]
    return {**stage, "cost_scale_factor": stored_scale, "cuts": [_scaled(cut, scale) for cut in stage.get("cuts", ())]}


def _scaled(cut: Plain, scale: float) -> dict[str, Any]:
    scaled = dict(cut)
    if "intercept" in cut:
        scaled["intercept"] = cut["intercept"] * scale
    if "coefficients" in cut:
        scaled["coefficients"] = [value * scale for value in cut["coefficients"]]
    if lags := cut.get("inflow_lag_coefficients"):
        scaled["inflow_lag_coefficients"] = {plant: [value * scale for value in row] for plant, row in lags.items()}
    return scaled


def _retired(stage_cuts: Sequence[Plain], stage_bases: Sequence[Plain]) -> Iterator[str]:
    for at, stage in enumerate(stage_cuts):
        if "active_cut_indices" in stage:
            yield f"stage_cuts[{at}] has `active_cut_indices`, which is retired: remove it"
        for place, cut in enumerate(stage.get("cuts", ())):
            if "cut_id" in cut:
                yield f"stage_cuts[{at}].cuts[{place}] has `cut_id`, which is retired: remove it"
                break
    for at, basis in enumerate(stage_bases):
        for name in RETIRED_OF_BASES:
            if name in basis:
                yield f"stage_bases[{at}] has `{name}`, which is retired: remove it"


def _scale_problems(stage_cuts: Sequence[Plain]) -> Iterator[str]:
    for at, stage in enumerate(stage_cuts):
        scale = stage.get("cost_scale_factor")
        if not isinstance(scale, int | float) or not math.isfinite(scale) or scale <= 0.0:
            yield f"stage_cuts[{at}].cost_scale_factor is {scale}; a number above 0 is needed, 1.0 for cuts in $"


def _producer_problems(producer: Plain, stage_bases: Sequence[Plain], stage_states: Sequence[Plain]) -> Iterator[str]:
    history = producer.get("state_history")
    is_window = isinstance(history, int) and not isinstance(history, bool) and history > 0
    if history is not None and history != "whole" and not is_window:
        yield f"metadata.producer.state_history is {history!r}; None, 'whole' or a positive integer is needed"
    if producer.get("basis_store_complete") and not stage_bases:
        yield "metadata.producer.basis_store_complete is set, and stage_bases is empty"
    rows = sum(int(states.get("count", 0)) for states in stage_states)
    if (stated := int(producer.get("total_visited_states") or 0)) != rows:
        yield f"metadata.producer.total_visited_states is {stated}, and stage_states has {rows} rows"
