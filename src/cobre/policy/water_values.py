"""What a hm3 of water is worth, by stage and reservoir: by a policy at a state, or in a simulation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cobre.core.state_names import owner_of
from cobre.policy.object import Policy

if TYPE_CHECKING:
    import pyarrow as pa

PERCENTILES = (5, 50, 95)


def policy_water_values(policy: Policy, state: Sequence[float]) -> "pa.Table":
    """Water values, $ per hm3, at the end of each stage but the last, if the study were in this state then."""
    import pyarrow as pa

    policy.checked_state(state)  # here, for a study of one stage asks no cut
    rows = [
        (stage_id, int(owner_of(name)), value)
        for stage, stage_id in enumerate(policy.stage_ids[:-1])
        for name, value in policy.water_values(stage, state).items()
    ]
    stages, hydros, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "stage_id": pa.array(stages, pa.int32()),
            "hydro_id": pa.array(hydros, pa.int32()),
            "water_value_per_hm3": pa.array(values, pa.float64()),
        }
    )


def simulated_water_values(hydros: "pa.Table") -> "pa.Table":
    """Mean and percentiles over scenarios, $ per hm3; a stage's value is that of its last block."""
    import pyarrow as pa

    keys = ("stage_id", "hydro_id", "scenario_id", "block_id")
    stage, hydro, scenario, block = (hydros[name].to_numpy() for name in keys)
    order = np.lexsort((block, scenario, hydro, stage))
    stage, hydro, scenario = stage[order], hydro[order], scenario[order]
    is_last = np.append((np.diff(stage) != 0) | (np.diff(hydro) != 0) | (np.diff(scenario) != 0), True)
    stage, hydro = stage[is_last], hydro[is_last]
    values = hydros["water_value_per_hm3"].to_numpy()[order][is_last]
    starts = np.flatnonzero(np.append(True, (np.diff(stage) != 0) | (np.diff(hydro) != 0)))
    groups = np.split(values, starts[1:])
    percentiles = np.array([np.percentile(group, PERCENTILES) for group in groups])
    return pa.table(
        {
            "stage_id": pa.array(stage[starts], pa.int32()),
            "hydro_id": pa.array(hydro[starts], pa.int32()),
            "mean_per_hm3": pa.array([float(group.mean()) for group in groups], pa.float64()),
            **{f"p{p}_per_hm3": pa.array(percentiles[:, column]) for column, p in enumerate(PERCENTILES)},
        }
    )
