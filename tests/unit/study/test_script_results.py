"""Results in notebooks and for other libraries."""

import sys

import numpy as np
import pytest
from example_study import EXAMPLE

import cobre
from cobre.study.dataframes import as_pandas, with_names


@pytest.fixture(scope="module")
def training():
    return cobre.train(EXAMPLE, iterations=4, threads=1)


@pytest.fixture(scope="module")
def simulated(training):
    return cobre.simulate(EXAMPLE, training.policy, scenarios=5, threads=1)


def test_results_have_html(training, simulated):
    assert training.digest[:16] in training._repr_html_()
    assert "<svg" in training._repr_html_()
    assert "mean cost" in simulated._repr_html_()
    assert "<script" not in training._repr_html_() + simulated._repr_html_()


def test_results_draw_figures(training, simulated):
    assert len(training.plot_bounds().axes[0].lines[-1].get_ydata()) == training.iterations
    assert [text.get_text() for text in simulated.plot_fan("storage").texts] == ["Stored water, all hydros"]
    figure = simulated.plot_fan("water_value", entity=1)
    assert [text.get_text() for text in figure.texts] == ["Water value, Lower"]
    assert len(figure.axes[0].lines[0].get_ydata()) == 12
    with pytest.raises(ValueError, match="'unicorns'"):
        simulated.plot_fan("unicorns")


def test_water_values_of_a_policy(training):
    state = [700.0, 200.0]
    table = training.water_values(state)
    assert table.num_rows == 11 * 2
    rows = [row for row in table.to_pylist() if row["stage_id"] == 4]
    assert {f"storage:{row['hydro_id']}": row["water_value_per_hm3"] for row in rows} == training.policy.water_values(
        4, state
    )
    assert min(table["water_value_per_hm3"].to_pylist()) >= 0
    with pytest.raises(ValueError, match="2 entries"):
        training.water_values([1.0])


def test_water_values_of_a_simulation(simulated):
    table = simulated.water_values()
    assert table.num_rows == 12 * 2
    hydros = simulated.table("hydros")
    columns = {name: hydros[name].to_numpy() for name in ("stage_id", "hydro_id", "block_id", "water_value_per_hm3")}
    last = columns["block_id"].max()
    for row in table.to_pylist():
        chosen = (
            (columns["stage_id"] == row["stage_id"])
            & (columns["hydro_id"] == row["hydro_id"])
            & (columns["block_id"] == last)
        )
        values = columns["water_value_per_hm3"][chosen]
        assert len(values) == 5
        assert row["mean_per_hm3"] == pytest.approx(values.mean())
        assert row["p50_per_hm3"] == np.percentile(values, 50)


def test_bounds_and_tables_as_arrow(training, simulated):
    assert training.to_arrow().num_rows == 4
    assert simulated.to_arrow() is simulated.tables["costs"]
    with pytest.raises(KeyError, match="this simulation has"):
        simulated.table("unicorns")


def test_bounds_and_tables_as_pandas(training, simulated):
    pytest.importorskip("pandas")
    assert training.to_pandas()["lower_bound"].iloc[-1] == training.lower_bound
    assert len(simulated.to_pandas("hydros")) == simulated.tables["hydros"].num_rows


def test_frames_have_names_and_dates(simulated):
    pytest.importorskip("pandas")
    hydros = simulated.to_pandas("hydros")
    named = {entry["id"]: entry["name"] for entry in simulated.facts["entities"]["hydros"]}
    assert hydros["hydro_name"].tolist() == [named[id_] for id_ in hydros["hydro_id"]]
    starts = {stage["id"]: stage["start_date"] for stage in simulated.facts["stages"]}
    assert [str(start)[:10] for start in hydros["stage_start"]] == [starts[id_] for id_ in hydros["stage_id"]]
    assert list(hydros.columns[:3]) == ["scenario_id", "stage_id", "stage_start"]
    assert simulated.tables["hydros"].column_names == [
        name for name in hydros.columns if name not in ("stage_start", "hydro_name")
    ]


def test_arrays_have_names_and_dates_along_their_ids(simulated):
    pytest.importorskip("xarray")
    buses = simulated.to_xarray("buses")
    assert buses["bus_name"].dims == ("bus_id",)
    assert buses["bus_name"].values.tolist() == [entry["name"] for entry in simulated.facts["entities"]["buses"]]
    assert str(buses["stage_start"].values[0])[:10] == simulated.facts["stages"][0]["start_date"]
    assert "bus_name" not in buses.data_vars


def test_ids_without_names_are_unlabelled(simulated):
    table = simulated.tables["hydros"]
    assert with_names(table, {}) is table


def test_bounds_and_tables_as_polars(training, simulated):
    pytest.importorskip("polars")
    assert training.to_polars()["lower_bound"][-1] == training.lower_bound
    assert simulated.to_polars("buses").height == simulated.tables["buses"].num_rows


def test_missing_library_error_names_it(training, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        as_pandas(training.bounds)
