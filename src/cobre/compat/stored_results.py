"""Tables of an output directory read back, with the columns that scripts know."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.compat.simulation_columns import needed_for, with_known_columns
from cobre.io.output.results import read_results
from cobre.runs.events import Event
from cobre.runs.files import CONVERGENCE, TRAINING
from cobre.runs.stored import logged_run, stored_study

if TYPE_CHECKING:
    import pyarrow as pa

CONVERGENCE_COLUMNS = (
    "iteration",
    "lower_bound",
    "upper_bound",
    "upper_bound_std",
    "upper_bound_kind",
    "gap_percent",
    "cuts_added",
    "cuts_removed",
    "cuts_active",
    "time_forward_ms",
    "time_backward_ms",
    "time_total_ms",
    "forward_passes",
    "lp_solves",
    "mean_rows_in_lp",
)


def convergence_with_times(folder: Path) -> "pa.Table":
    """training/convergence.parquet with counts over all stages, and with times as far as the log has them."""
    import pyarrow as pa

    table = read_results(folder / TRAINING)[CONVERGENCE]
    study = stored_study(folder)
    stages = max(1, len(study.get("stages", ())) - 1)
    added = stages * table["forward_passes"].to_numpy().astype(np.int64)
    columns = {
        "cuts_added": pa.array(added, pa.int32()),
        **_active_cuts(table, added),
        **_times(logged_run(folder).iterations, table["iteration"].to_pylist()),
        # Which cuts a lazy solve loads is the solver's own business here, and not counted.
        "mean_rows_in_lp": _constant(None if _is_lazy(study) else 0.0, table.num_rows),
    }
    own = [name for name in table.column_names if name not in CONVERGENCE_COLUMNS]
    columns = {name: table[name] for name in table.column_names} | columns
    return pa.table({name: columns[name] for name in (*CONVERGENCE_COLUMNS, *own)})


def _active_cuts(table: "pa.Table", added: NDArray[np.int64]) -> "dict[str, pa.Array]":
    """Active cuts at the end of each iteration; null where cuts loaded from elsewhere make the count unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "cuts_active" not in table.column_names:
        unknown = pa.nulls(table.num_rows, pa.int64())
        return {"cuts_removed": unknown.cast(pa.int32()), "cuts_active": unknown}
    active = table["cuts_active"].combine_chunks()
    began_empty = table["cuts"][0].as_py() == table["forward_passes"][0].as_py()
    before = pa.concat_arrays([pa.array([0 if began_empty else None], pa.int64()), active[:-1]])
    removed = pc.subtract(pc.add(before, pa.array(added, pa.int64())), active)
    return {"cuts_removed": removed.cast(pa.int32()), "cuts_active": active}


def _is_lazy(study: Mapping[str, Any]) -> bool:
    chosen = study.get("config", {}).get("training", {}).get("cut_selection", {})
    return bool(chosen.get("selection", {}).get("method") == "dynamic")


def _constant(value: float | None, count: int) -> "pa.Array":
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, pa.float64()), count)


def _times(events: Sequence[Event], iterations: Sequence[int]) -> "dict[str, pa.Array]":
    """Milliseconds of each iteration, from its event; null where the log has none."""
    import pyarrow as pa

    by_iteration = {event["iteration"]: event for event in events}
    found = [by_iteration.get(number, {}) for number in iterations]
    parts: dict[str, tuple[str, ...]] = {
        "time_forward_ms": ("forward_s",),
        "time_backward_ms": ("backward_s",),
        "time_total_ms": ("forward_s", "backward_s", "bound_s", "exchange_s"),
    }
    return {
        name: pa.array([_milliseconds([event.get(part) for part in summed]) for event in found], pa.int64())
        for name, summed in parts.items()
    }


def _milliseconds(parts: Sequence[float | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return round(1000.0 * sum(known)) if len(known) == len(parts) else None


def simulation_tables(folder: Path, only: str | None = None) -> "dict[str, pa.Table]":
    """All tables, or one as far as it is there, checked against the manifest; raises ResultsError."""
    return with_known_columns(read_results(folder, None if only is None else needed_for(only)))


def openings_of(folder: Path, stage_id: int) -> NDArray[np.float64]:
    """The openings of a stage as a table: openings x entities with noise. Raises ResultsError for a damaged file."""
    table = read_results(folder, ["noise_openings"])["noise_openings"]
    rows = table.filter(table["stage_id"].to_numpy() == stage_id)
    if not rows.num_rows:
        known = sorted(set(table["stage_id"].to_pylist()))
        hint = f"the stages are {known[0]} to {known[-1]}" if known else "this study has no noise"
        raise IndexError(f"there is no stage {stage_id}: {hint}")
    opening, entity = (rows[name].to_numpy().astype(np.int64) for name in ("opening_index", "entity_index"))
    values = np.zeros((int(opening.max()) + 1, int(entity.max()) + 1))
    values[opening, entity] = rows["value"].to_numpy()
    return values


def coefficients_of(folder: Path) -> NDArray[np.float64]:
    """hydro_id, stage_id, lag and coefficient, row by row. Raises ResultsError for a damaged file."""
    table = read_results(folder, ["inflow_ar_coefficients"])["inflow_ar_coefficients"]
    columns = [table[name].to_numpy().astype(np.float64) for name in ("hydro_id", "stage_id", "lag", "coefficient")]
    return np.column_stack(columns)
