"""Run in cobre-python's own environment: run cases and print lower bounds and some columns of tables as JSON.

Arguments: the tables with their columns as JSON, then case directories. Output directories are temporary ones.
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


def results(case, tables):
    bounds = []

    def note(event):
        bounds.append(event["lower_bound"])

    with tempfile.TemporaryDirectory() as folder:
        cobre.run.run(case, folder, threads=1, on_iteration=note)
        found = {table: rows(folder, table, names) for table, names in tables.items()}
    return {"bounds": bounds} | found


wanted = json.loads(sys.argv[1])
print(json.dumps([results(case, wanted) for case in sys.argv[2:]]))
