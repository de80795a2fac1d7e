"""Figures and snippets for notebooks."""

import ast
import subprocess
import sys
from collections import Counter

import matplotlib as mpl
import numpy as np
import pytest
from report_page import EXAMPLE, Page

import cobre
from cobre.report.figures import plot_bounds, plot_fan
from cobre.report.notebook_html import simulation_html, training_html


@pytest.fixture(scope="module")
def training():
    return cobre.train(EXAMPLE, iterations=6, threads=1)


@pytest.fixture(scope="module")
def simulation(training):
    return cobre.simulate(EXAMPLE, training.policy, scenarios=30, threads=1)


def test_plot_bounds_draws_bounds_and_band(training, tmp_path):
    figure = plot_bounds(training)
    paths, cost, lower = figure.axes[0].lines
    assert lower.get_ydata() == pytest.approx([record.lower_bound / 1e6 for record in training.history])
    assert paths.get_ydata() == pytest.approx([record.upper_bound / 1e6 for record in training.history])
    assert cost.get_ydata() == pytest.approx([record.policy_cost.value / 1e6 for record in training.history])
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "lower bound"
    figure.savefig(tmp_path / "bounds.png")


def test_plot_fan_draws_percentiles(simulation):
    hydros = simulation.tables["hydros"].to_pylist()
    stored = [row["storage_final_hm3"] for row in hydros if (row["block_id"], row["hydro_id"]) == (2, 1)]
    by_stage = np.reshape(stored, (30, -1))
    figure = plot_fan(simulation, "storage", entity=1)
    median, mean = figure.axes[0].lines
    assert median.get_ydata() == pytest.approx(np.median(by_stage, axis=0))
    assert mean.get_ydata() == pytest.approx(by_stage.mean(axis=0))
    assert [text.get_text() for text in figure.texts] == ["Stored water, Lower"]


@pytest.mark.parametrize(
    ("quantity", "table", "column"),
    [
        ("storage", "hydros", "storage_final_hm3"),
        ("inflow", "hydros", "incremental_inflow_m3s"),
        ("hydro_generation", "hydros", "generation_mwh"),
        ("thermal_generation", "thermals", "generation_mwh"),
        ("deficit", "buses", "deficit_mwh"),
        ("load", "buses", "load_mwh"),
    ],
)
def test_quantities_are_summed_over_entities(simulation, quantity, table, column):
    """Energies of all blocks become the mean power of the stage; other quantities are those of the last block."""
    hours = [stage.hours for stage in cobre.load_case(EXAMPLE).horizon.stages]
    sums = Counter()
    for row in simulation.tables[table].to_pylist():
        key = row["scenario_id"], row["stage_id"]
        if column.endswith("_mwh"):
            sums[key] += row[column] / hours[row["stage_id"]]
        elif row["block_id"] == 2:
            sums[key] += row[column]
    by_stage = np.reshape([sums[key] for key in sorted(sums)], (30, -1))
    median, mean = plot_fan(simulation, quantity).axes[0].lines
    assert median.get_ydata() == pytest.approx(np.median(by_stage, axis=0))
    assert mean.get_ydata() == pytest.approx(by_stage.mean(axis=0))


def test_impossible_plots_raise_value_error(simulation):
    with pytest.raises(
        ValueError, match="water_value cannot be summed: choose one hydro_id with entity=; there are 0, 1"
    ):
        plot_fan(simulation, "water_value")
    with pytest.raises(ValueError, match="storage has no hydro_id 7; there are 0, 1"):
        plot_fan(simulation, "storage", entity=7)
    with pytest.raises(ValueError, match="there is no 'wind' to plot; this result has storage, inflow"):
        plot_fan(simulation, "wind")
    assert [text.get_text() for text in plot_fan(simulation, "spot_price").texts] == ["Spot price, Valley"], "one bus"


def test_matplotlib_settings_of_notebook_are_restored(training):
    before = dict(mpl.rcParams)
    plot_bounds(training)
    training_html(training)
    assert dict(mpl.rcParams) == before


def test_snippets_are_html_without_scripts(training, simulation):
    for snippet in (training_html(training), simulation_html(simulation)):
        page = Page(snippet)
        assert "script" not in {tag for tag, _, _ in page.attributes}
    assert "lower bound" in Page(training_html(training)).text
    assert "30" in Page(simulation_html(simulation)).text


@pytest.mark.parametrize("module", ["cobre.report", "cobre.cli.main", "cobre.study.results"])
def test_matplotlib_is_imported_on_first_plot(module):
    program = f"import sys, {module}; print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"matplotlib", "pyarrow"} & set(ast.literal_eval(printed))
