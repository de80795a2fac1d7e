"""The same case, declared in another order: entities, rows of tables and entries of lists."""

import json
import random
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

# Lists whose order has a meaning.
MEANINGFUL = ("deficit_segments", "matrix", "entities", "values")
# Fields of records whose order has a meaning, or is that of a sum.
ORDERED = ("stopping_rules", "deficit_segments", "terms")


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


def shuffled_case(part, order):
    """Return a case in memory with all entities, table rows, mappings and lists of records in another order."""
    if isinstance(part, dict):
        return _shuffled_mapping(part, order)
    if isinstance(part, tuple) and all(is_dataclass(entry) for entry in part):
        return tuple(shuffled_case(entry, order) for entry in order.sample(part, len(part)))
    if not is_dataclass(part) or any(hasattr(part, name) for name in ORDERED):
        return part
    if hasattr(part, "matrix"):  # a correlation group: entities and matrix together
        turned = order.sample(range(len(part.entities)), len(part.entities))
        entities = tuple(part.entities[place] for place in turned)
        return replace(part, entities=entities, matrix=part.matrix[np.ix_(turned, turned)])
    return replace(part, **{item.name: shuffled_case(getattr(part, item.name), order) for item in fields(part)})


def _shuffled_mapping(part, order):
    keys = order.sample(list(part), len(part))
    if part and all(isinstance(column, np.ndarray) for column in part.values()):  # a table
        count = len(part[keys[0]])
        rows = np.array(order.sample(range(count), count), np.intp)
        return {key: part[key][rows] for key in keys}
    return {key: shuffled_case(part[key], order) for key in keys}


def same(left, right):
    """Compare values, arrays included."""
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if is_dataclass(left):
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in fields(left))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(same(*pair) for pair in zip(left, right, strict=True))
    return left == right
