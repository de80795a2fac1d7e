"""A case with infeasible scenarios: a reservoir must be filled in the first month at any cost.

The scenarios of the first iteration differ in their inflow: those of rank 0 of two are wet, those of rank 1 are dry.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from studies import QUICK_CASE, small_copy

SEED = 5
LEVEL_HM3 = 1514.0  # the initial storage, and a month of mean inflow


def write_demanding_case(folder):
    case = small_copy(QUICK_CASE, folder, tree_seed=SEED)
    config = json.loads((case / "config.json").read_text())
    config["modeling"] = {"inflow_non_negativity": {"method": "none"}}
    (case / "config.json").write_text(json.dumps(config))
    filled = {"id": 0, "name": "filled", "expression": "hydro_storage(0)", "slack": {"enabled": False}}
    (case / "constraints").mkdir()
    (case / "constraints" / "generic_constraints.json").write_text(json.dumps({"constraints": [filled]}))
    bounds = {
        "constraint_id": pa.array([0], pa.int32()),
        "stage_id": pa.array([0], pa.int32()),
        "block_id": pa.array([None], pa.int32()),
        "bound_lower": pa.array([LEVEL_HM3], pa.float64()),
        "bound_upper": pa.array([None], pa.float64()),
    }
    pq.write_table(pa.table(bounds), case / "constraints" / "generic_constraint_bounds.parquet")
    return case
