"""The same case, declared in another order: entities, rows of tables and entries of lists."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq

# Lists whose order has a meaning of its own.
MEANINGFUL = ("deficit_segments", "matrix", "entities")


def write_shuffled(case: Path, target: Path, seed: int) -> Path:
    order = random.Random(seed)
    for path in sorted(case.rglob("*")):
        place = target / path.relative_to(case)
        if path.suffix in {".json", ".parquet"}:
            place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            place.write_text(json.dumps(_shuffled(json.loads(path.read_text()), order)))
        elif path.suffix == ".parquet":
            table = pq.read_table(path)
            pq.write_table(table.take(order.sample(range(len(table)), len(table))), place)
    return target


def _shuffled(value, order):
    if isinstance(value, dict):
        keys = order.sample(list(value), len(value))
        return {key: value[key] if key in MEANINGFUL else _shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [_shuffled(entry, order) for entry in order.sample(value, len(value))]
    return value
