"""The digest covers bounds and cuts to the last bit, and irrelevant changes do not affect it."""

from pathlib import Path

import pytest
from shuffled_case import write_shuffled

import cobre

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
# Cascades, lines, wind, inflows with memory and correlation: everything that could depend on an order.
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
    """Reorder entities, rows of tables and entries of lists."""
    assert digest(write_shuffled(CASE, tmp_path, seed)) == reference


def test_different_case_has_different_digest(reference):
    other = cobre.train(CASE, threads=1, iterations=ITERATIONS, config_overrides={"training.tree_seed": 43})
    assert other.digest != reference
