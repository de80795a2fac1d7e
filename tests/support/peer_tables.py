"""Run in cobre-python's own environment: run cases and print inflows, lags, costs and bounds as JSON.

Arguments: case directories. The output directories are temporary ones.
"""

import json
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import cobre


def rows(folder, table, names):
    found = []
    for file in sorted(Path(folder, "simulation", table).glob("*/data.parquet")):
        columns = pq.read_table(file).to_pydict()
        found += [list(row) for row in zip(*(columns[name] for name in names), strict=True)]
    return found


def tables(case):
    bounds = []

    def note(event):
        bounds.append((event["lower_bound"], event["upper_bound"]))

    with tempfile.TemporaryDirectory() as folder:
        cobre.run.run(case, folder, threads=1, on_iteration=note)
        inflow = rows(folder, "hydros", ("scenario_id", "stage_id", "hydro_id", "incremental_inflow_m3s"))
        lags = rows(folder, "inflow_lags", ("scenario_id", "stage_id", "hydro_id", "lag_index", "inflow_m3s"))
        costs = rows(folder, "costs", ("scenario_id", "stage_id", "node_id", "immediate_cost"))
        summary = pq.read_table(Path(folder, "simulation", "scenario_summary.parquet")).to_pydict()
    return {"bounds": bounds, "inflow": inflow, "lags": lags, "costs": costs, "summary": summary}


print(json.dumps([tables(case) for case in sys.argv[1:]]))
