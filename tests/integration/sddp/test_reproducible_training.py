"""The digest covers bounds and cuts to the last bit. What must not matter, does not change it."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import cobre

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
# Cascades, lines, wind, inflows with memory and correlation: whatever could depend on an order.
CASE = EXAMPLES / "four_regions"
ITERATIONS = 3


def digest(case, threads=1):
    return cobre.train(case, threads=threads, iterations=ITERATIONS).digest


@pytest.fixture(scope="module")
def reference():
    return digest(CASE)


@pytest.mark.parametrize("threads", [2, 4])
def test_number_of_threads_changes_no_bit(reference, threads):
    assert digest(CASE, threads) == reference


def test_repetition_changes_no_bit(reference):
    assert digest(CASE) == reference


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_declaration_changes_no_bit(tmp_path, reference, seed):
    """Entities, rows of tables and entries of lists, all in another order."""
    order = random.Random(seed)
    for path in CASE.rglob("*"):
        target = tmp_path / path.relative_to(CASE)
        if path.suffix == ".json":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(shuffled(json.loads(path.read_text()), order)))
        elif path.suffix == ".parquet":
            target.parent.mkdir(parents=True, exist_ok=True)
            table = pq.read_table(path)
            pq.write_table(table.take(order.sample(range(len(table)), len(table))), target)
    assert digest(tmp_path) == reference


# Lists whose order has a meaning of its own.
MEANINGFUL = ("deficit_segments", "matrix", "entities")


def shuffled(value, order):
    if isinstance(value, dict):
        keys = order.sample(list(value), len(value))
        return {key: value[key] if key in MEANINGFUL else shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(entry, order) for entry in order.sample(value, len(value))]
    return value


def test_another_case_has_another_digest(reference):
    other = cobre.train(CASE, threads=1, iterations=ITERATIONS, config_overrides={"training.tree_seed": 43})
    assert other.digest != reference
