"""Figures and snippets for notebooks."""

import ast
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from report_page import EXAMPLE, Page

import cobre
from cobre.report.figures import plot_bounds, plot_fan
from cobre.report.notebook_html import simulation_html, training_html


@pytest.fixture(scope="module")
def trained():
    return cobre.train(EXAMPLE, iterations=6, threads=1)


@pytest.fixture(scope="module")
def simulated(trained):
    return cobre.simulate(EXAMPLE, trained.policy, scenarios=30, threads=1)


def test_plot_bounds(trained, tmp_path):
    figure = plot_bounds(trained)
    paths, cost, lower = figure.axes[0].lines
    assert lower.get_ydata() == pytest.approx([record.lower_bound / 1e6 for record in trained.history])
    assert paths.get_ydata() == pytest.approx([record.upper_bound / 1e6 for record in trained.history])
    assert cost.get_ydata() == pytest.approx([record.policy_cost.value / 1e6 for record in trained.history])
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "lower bound"
    figure.savefig(tmp_path / "bounds.png")


def test_plot_fan(simulated):
    hydros = simulated.tables["hydros"].to_pylist()
    stored = [row["storage_final_hm3"] for row in hydros if (row["block_id"], row["hydro_id"]) == (2, 1)]
    by_stage = np.reshape(stored, (30, -1))
    figure = plot_fan(simulated, "storage", entity=1)
    median, mean = figure.axes[0].lines
    assert median.get_ydata() == pytest.approx(np.median(by_stage, axis=0))
    assert mean.get_ydata() == pytest.approx(by_stage.mean(axis=0))
    assert [text.get_text() for text in figure.texts] == ["Stored water, Lower"]


@pytest.mark.parametrize("quantity", ["storage", "inflow", "hydro_generation", "thermal_generation", "deficit", "load"])
def test_quantities_are_summed_over_entities(simulated, quantity):
    assert plot_fan(simulated, quantity).axes[0].lines


def test_impossible_plots_raise_value_error(simulated):
    with pytest.raises(
        ValueError, match="water_value cannot be summed: choose one hydro_id with entity=; there are 0, 1"
    ):
        plot_fan(simulated, "water_value")
    with pytest.raises(ValueError, match="storage has no hydro_id 7; there are 0, 1"):
        plot_fan(simulated, "storage", entity=7)
    with pytest.raises(ValueError, match="there is no 'wind' to plot; this result has storage, inflow"):
        plot_fan(simulated, "wind")
    assert plot_fan(simulated, "spot_price").axes[0].lines  # there is one bus


def test_settings_of_the_notebook_stay(trained):
    before = dict(mpl.rcParams)
    plot_bounds(trained)
    training_html(trained)
    assert dict(mpl.rcParams) == before


def test_snippets_are_html_without_scripts(trained, simulated):
    for snippet in (training_html(trained), simulation_html(simulated)):
        page = Page(snippet)
        assert "script" not in {tag for tag, _, _ in page.attributes}
    assert "lower bound" in Page(training_html(trained)).text
    assert "30" in Page(simulation_html(simulated)).text


@pytest.mark.parametrize("module", ["cobre.report", "cobre.cli.main", "cobre.study.results"])
def test_charts_are_loaded_when_they_are_drawn(module):
    program = f"import sys, {module}; print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"matplotlib", "pyarrow"} & set(ast.literal_eval(printed))
