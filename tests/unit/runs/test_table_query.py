"""Queries of tables that are small enough to check by hand."""

import json

import pyarrow as pa
import pytest

from cobre.io.output import ResultsError, write_results
from cobre.runs.table_query import QueryError, TableQuery, available_tables, query_table

HYDROS = pa.table(
    {
        "scenario_id": pa.array([0, 0, 0, 0, 1, 1, 1, 1], pa.int32()),
        "stage_id": pa.array([0, 0, 1, 1, 0, 0, 1, 1], pa.int32()),
        "hydro_id": pa.array([3, 5, 3, 5, 3, 5, 3, 5], pa.int32()),
        "storage_final_hm3": [10.0, 1.0, 20.0, 2.0, 30.0, 3.0, float("inf"), 4.0],
        "spillage_m3s": [0.0] * 8,
    }
)
COSTS = pa.table({"scenario_id": pa.array([0, 1], pa.int32()), "total_cost": [5.0, 7.0]})
BOUNDS = pa.table({"iteration": pa.array([1, 2], pa.int32()), "lower_bound": [1.0, 2.0], "kind": ["a", "b"]})


@pytest.fixture
def run(tmp_path):
    write_results(tmp_path / "simulation", {"hydros": HYDROS, "costs": COSTS}, {})
    write_results(tmp_path / "training", {"convergence": BOUNDS}, {})
    entities = {"hydros": [{"id": 3, "name": "Upper"}, {"id": 5, "name": "Lower"}]}
    (tmp_path / "study.json").write_text(json.dumps({"entities": entities}))
    return tmp_path


def test_query_lists_tables(run):
    assert set(available_tables(run)) == {"hydros", "costs", "convergence"}


def test_query_returns_all_rows(run):
    answer = query_table(run, TableQuery("costs"))

    assert answer.rows == ({"scenario_id": 0, "total_cost": 5.0}, {"scenario_id": 1, "total_cost": 7.0})
    assert answer.total == 2


def test_query_selects_rows_and_columns(run):
    query = TableQuery("hydros", columns=["storage_final_hm3"], scenarios=[0], stages=[1], entities=["Lower", 3])

    answer = query_table(run, query)

    assert answer.rows == ({"storage_final_hm3": 20.0}, {"storage_final_hm3": 2.0})


def test_pages_through_rows_with_the_total(run):
    pages = [query_table(run, TableQuery("hydros", ["hydro_id"], limit=3, offset=at)) for at in (0, 3, 6, 9)]

    assert [len(page.rows) for page in pages] == [3, 3, 2, 0]
    assert {page.total for page in pages} == {8}
    assert pages[0].as_dict()["names"] == {"hydro_id": {"3": "Upper", "5": "Lower"}}


def test_query_computes_statistics(run):
    answer = query_table(run, TableQuery("hydros", ["storage_final_hm3"], group_by=["hydro_id"], stages=[0]))

    assert answer.rows == (
        _statistics(3, 20.0, 10.0, 30.0),
        _statistics(5, 2.0, 1.0, 3.0),
    )


def _statistics(hydro, mean, least, most):
    name = "storage_final_hm3"
    return {"hydro_id": hydro, f"{name}_mean": mean, f"{name}_min": least, f"{name}_max": most}


def test_query_computes_statistics_of_all_numbers(run):
    answer = query_table(run, TableQuery("hydros", group_by=["stage_id"]))

    assert len(answer.columns) == 1 + 2 * 3
    assert [row["stage_id"] for row in answer.rows] == [0, 1]


def test_nan_becomes_null(run):
    answer = query_table(run, TableQuery("hydros", ["storage_final_hm3"], scenarios=[1], stages=[1], entities=[3]))

    assert answer.rows == ({"storage_final_hm3": None},)
    json.dumps(answer.as_dict(), allow_nan=False)


def test_bounds_can_be_queried_as_a_table(run):
    assert query_table(run, TableQuery("convergence", ["lower_bound"])).rows[-1] == {"lower_bound": 2.0}


def test_bounds_are_queried_without_simulation(run):
    (run / "simulation" / "manifest.json").unlink()

    assert set(available_tables(run)) == {"convergence"}


def test_query_without_names_uses_ids(run):
    (run / "study.json").unlink()

    assert query_table(run, TableQuery("hydros", entities=[5])).total == 4


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (TableQuery("thermals"), "there are convergence, costs, hydros"),
        (TableQuery("../secret"), "there is no table"),
        (TableQuery("hydros", ["storage"]), "no column storage; it has scenario_id"),
        (TableQuery("hydros", group_by=["week"]), "no column week"),
        (TableQuery("hydros", entities=["Middle"]), r"Upper \(3\), Lower \(5\)"),
        (TableQuery("costs", stages=[1]), "no column stage_id"),
        (TableQuery("costs", entities=[1]), "not about entities"),
        (TableQuery("hydros", scenarios=[2**40]), "not values of this column"),
        (TableQuery("convergence", ["kind"], group_by=["iteration"]), "text"),
    ],
)
def test_invalid_query_raises_with_reason(run, query, words):
    with pytest.raises(QueryError, match=words):
        query_table(run, query)


def test_query_without_simulation_raises(tmp_path):
    with pytest.raises(ResultsError, match=r"manifest\.json is missing"):
        query_table(tmp_path, TableQuery("hydros"))


def test_damaged_table_raises(run):
    (run / "simulation" / "hydros.parquet").write_bytes(b"no parquet")

    with pytest.raises(ResultsError, match="checksum differs"):
        query_table(run, TableQuery("hydros"))


def test_damaged_study_file_raises(run):
    (run / "study.json").write_text("[]")

    with pytest.raises(QueryError, match=r"study\.json cannot be read"):
        query_table(run, TableQuery("hydros"))
