"""Results of a run as novomodelo 0.19 gives them to scripts: `cobre.results`, with policies in its form."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    found = _load_policy(output_dir, policy_subdir)
    found["metadata"]["producer"] |= _NOT_KEPT
    return {
        "metadata": found["metadata"],
        "stage_cuts": [_in_units(stage) for stage in found["stage_cuts"]],
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
