"""The bounds of a training run as a table, in the columns of training/convergence.parquet."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cobre.sddp.events import IterationRecord

if TYPE_CHECKING:
    import pyarrow as pa


def convergence_table(history: Sequence[IterationRecord]) -> "pa.Table":
    """One row for each iteration; the upper bound is that of the sampled paths, which its kind says."""
    import pyarrow as pa

    columns = {
        "iteration": pa.array([record.iteration for record in history], pa.int32()),
        "lower_bound": pa.array([record.lower_bound for record in history], pa.float64()),
        "upper_bound": pa.array([record.upper_bound for record in history], pa.float64()),
        "upper_bound_std": pa.array([record.upper_bound_std for record in history], pa.float64()),
        "upper_bound_half_width": pa.array([record.half_width for record in history], pa.float64()),
        "upper_bound_kind": pa.array(["statistical"] * len(history), pa.string()),
        "gap_percent": pa.array([100.0 * record.gap for record in history], pa.float64()),
        "forward_passes": pa.array([record.forward_passes for record in history], pa.int32()),
        "cuts": pa.array([record.cuts for record in history], pa.int64()),
        "cuts_active": pa.array([record.cuts_active for record in history], pa.int64()),
        "lp_solves": pa.array([record.solves for record in history], pa.int64()),
        "simplex_iterations": pa.array([record.simplex_iterations for record in history], pa.int64()),
    }
    return pa.table(columns)
