"""Columns between NumPy and Arrow, without pandas."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cobre.io.storage.arrow_columns import column_of, null_rows, numbers_of, table_of

EXAMPLE = Path(__file__).parents[4] / "examples" / "two_reservoirs"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], pa.int32()),
        ([], pa.int64()),
        ([1, None, -3], pa.int64()),
        ([1.5, None, float("inf")], pa.float64()),
        ([None, None], pa.float64()),
        ([7, None], pa.int8()),
        ((4, 5), pa.int32()),
        (["statistical", "", "água"], pa.string()),
        (["a", None, "b"], pa.string()),
        ([], pa.string()),
        ([None] * 9 + [3], pa.int32()),
    ],
)
def test_list_gives_the_same_column_as_arrow(values, kind):
    made = column_of(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(5, dtype=np.int32),
        np.arange(12.0).reshape(3, 4)[:, 1],
        np.arange(6, dtype=np.uint32)[::-2],
        np.zeros(0),
        np.array([True, False, True] * 5),
        np.array(["a", "bc"]),
        np.array([1.0, np.nan]),
    ],
)
def test_array_gives_the_same_column_as_arrow(values):
    made = column_of(values)
    made.validate(full=True)
    assert made.type == pa.array(values).type
    assert str(made.to_pylist()) == str(pa.array(values).to_pylist())


def test_rows_may_be_null():
    values = np.array([4, -1, 5], np.int64)
    made = column_of(values, pa.int32(), values == -1)
    assert made.equals(pa.array([4, None, 5], pa.int32()))
    assert null_rows(made).tolist() == [False, True, False]
    assert null_rows(made[1:]).tolist() == [True, False]


def test_integers_that_overflow_are_refused():
    with pytest.raises(OverflowError, match="int32"):
        column_of(np.array([2**40]), pa.int32())
    with pytest.raises(OverflowError, match="int8"):
        column_of([300], pa.int8())


def test_table_has_arrays_and_columns():
    made = table_of({"a": np.arange(2), "b": column_of(["x", "y"], pa.string())})
    assert made.equals(pa.table({"a": np.arange(2), "b": ["x", "y"]}))


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64()])
def test_nulls_are_nan_in_numbers(kind):
    column = pa.chunked_array([pa.array([1, None], kind), pa.array([3], kind)])
    assert str(numbers_of(column).tolist()) == "[1.0, nan, 3.0]"


@pytest.mark.parametrize("workers", [1, 2])
def test_study_loads_neither_pandas_nor_the_compute_functions(tmp_path, workers):
    """Half a second if pandas is installed; the test means little if it is not."""
    program = (
        "import sys\n"
        "from cobre.study.requests import CaseRequest, RunRequest, with_iterations\n"
        "from cobre.study.placement import WorldRequest, choose_placement, call_on_ranks\n"
        "from pathlib import Path\n"
        "def run(comm, request, emit):\n"
        "    from cobre.study.run import run_study\n"
        "    run_study(comm, request, emit)\n"
        "    return sorted({'pandas', 'pyarrow.compute', 'pyarrow.dataset', 'matplotlib'} & set(sys.modules))\n"
        "case = CaseRequest(Path(sys.argv[1]), with_iterations(None, 2), 1)\n"
        "placement = choose_placement(WorldRequest('auto', int(sys.argv[3])))\n"
        "print(call_on_ranks(placement, run, (RunRequest(case, Path(sys.argv[2])),), lambda event: None))\n"
    )
    command = [sys.executable, "-c", program, EXAMPLE, tmp_path / "output", str(workers)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout == f"{[[]] * workers}\n", ran.stderr


def test_tables_of_a_case_are_read_without_the_file_systems_of_arrow():
    program = (
        "import sys, cobre\n"
        "case = cobre.load_case(sys.argv[1])\n"
        "assert case.scenarios.load_seasonal_stats['mean_mw'].size\n"
        "print(sorted({'pyarrow.fs', 'ssl', 'pyarrow.dataset'} & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, EXAMPLE], capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stdout == "[]\n", ran.stderr
