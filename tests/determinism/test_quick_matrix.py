"""The part of the determinism matrix that needs only this installation; `make determinism` runs all of it."""

import pytest
from cells import QUICK
from studies import SLOW_CASE, content_digest, small_copy

from cobre.runs.bit_comparison import compare_runs

# Inflows with memory, a cascade, lines: everything that could depend on an order, over enough iterations to kill.
FLAGS = ("--iterations", "6")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return small_copy(SLOW_CASE, tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def reference(tmp_path_factory, case):
    output = tmp_path_factory.mktemp("reference") / "output"
    QUICK[0].run(case, output, FLAGS)
    return output


@pytest.mark.parametrize("cell", QUICK[1:], ids=lambda cell: cell.name)
def test_every_cell_gives_same_digest(tmp_path, case, reference, cell):
    output = tmp_path / "output"
    cell.run(case, output, FLAGS)
    assert compare_runs(reference, output).difference is None
    assert content_digest(output) == content_digest(reference)
