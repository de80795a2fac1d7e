"""One short run of a peer, in its own environment: `run_deck.py cobre|novomodelo CASE OUTPUT`.

It prints a JSON object with the first lower bound and the number of LPs that it solved.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq


def main(module: str, case: str, output: str) -> None:
    """Run the case as it stands, on one thread."""
    bounds: list[float] = []
    import_module(module).run.run(case, output, 1, None, lambda event: bounds.append(event["lower_bound"]))
    solves = 0
    for part in ("training", "simulation"):
        table = Path(output) / part / "solver" / "iterations.parquet"
        if table.exists():
            solves += sum(pq.ParquetFile(table).read()["lp_solves"].to_pylist())
    print(json.dumps({"first_bound": bounds[0], "solves": solves}))


if __name__ == "__main__":
    main(*sys.argv[1:])
