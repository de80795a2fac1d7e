"""Run in cobre-python's own environment: run cases and print bounds and some columns of simulated tables as JSON.

Arguments: the tables with their columns as JSON, then case directories. Output directories are temporary ones.
"""

import json
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import cobre


def read_rows(folder, table, columns):
    rows = []
    for file in sorted(Path(folder, "simulation", table).glob("*/data.parquet")):
        by_column = pq.read_table(file).to_pydict()
        rows += [list(row) for row in zip(*(by_column[name] for name in columns), strict=True)]
    return rows


def results(case, tables):
    bounds = []

    def note(event):
        bounds.append((event["lower_bound"], event["upper_bound"]))

    with tempfile.TemporaryDirectory() as folder:
        cobre.run.run(case, folder, threads=1, on_iteration=note)
        by_table = {table: read_rows(folder, table, columns) for table, columns in tables.items()}
        summary = pq.read_table(Path(folder, "simulation", "scenario_summary.parquet")).to_pydict()
    return {"bounds": bounds, "summary": summary} | by_table


wanted = json.loads(sys.argv[1])
print(json.dumps([results(case, wanted) for case in sys.argv[2:]]))
