"""HTML of cases and policies in notebooks, and plots of any table."""

from dataclasses import replace

import pytest
from report_page import EXAMPLE

import cobre


@pytest.fixture(scope="module")
def case():
    return cobre.load_case(EXAMPLE)


@pytest.fixture(scope="module")
def training(case):
    return cobre.train(case, iterations=2, threads=1)


@pytest.fixture(scope="module")
def simulation(case, training):
    return cobre.simulate(case, training.policy, scenarios=6, threads=1)


def test_case_html_lists_sizes(case):
    html = replace(case, name="<b>x</b>")._repr_html_()
    assert "<b>x</b>" not in html
    assert "hydro plants" in html
    assert "hm³ of storage" in html
    assert len(html) < 3000


def test_policy_html_lists_cuts_and_states(training):
    html = training.policy._repr_html_()
    assert "cuts" in html
    assert "storage" in html
    assert len(html) < 2000


def test_every_table_can_be_plotted(simulation):
    plotted = 0
    for name, table in simulation.tables.items():
        if "scenario_id" not in table.column_names:
            continue
        column = next(column for column in table.column_names if not column.endswith("_id"))
        owner = [name for name in table.column_names if name.endswith("_id")][3:]
        entity = table[owner[0]][0].as_py() if owner else None
        assert simulation.plot(name, column, entity).axes
        plotted += 1
    assert plotted >= 4


def test_energy_is_summed_and_other_numbers_averaged_over_blocks(simulation):
    rows = simulation.to_pandas("hydros")
    rows = rows[rows["hydro_id"] == 0].groupby(["scenario_id", "stage_id"])
    for column, expected in (
        ("generation_mwh", rows["generation_mwh"].sum()),
        ("turbined_m3s", rows["turbined_m3s"].mean()),
    ):
        line = simulation.plot("hydros", column, entity=0).axes[0].lines[0].get_ydata()
        median = expected.unstack().median()
        scale = median.iloc[0] / line[0]
        assert line * scale == pytest.approx(median.to_numpy())
        assert scale == pytest.approx(round(scale)), "only a power of ten lies between"


def test_impossible_plots_raise_value_error(simulation):
    with pytest.raises(ValueError, match="has no 'happiness'"):
        simulation.plot("hydros", "happiness")
    with pytest.raises(ValueError, match="there are 0, 1"):
        simulation.plot("hydros", "spillage_m3s", entity=9)
    with pytest.raises(ValueError, match="choose one hydro_id"):
        simulation.plot("hydros", "water_value_per_hm3")


def test_tables_convert_to_arrays(training, simulation):
    assert training.to_xarray()["lower_bound"].dims == ("iteration",)
    assert simulation.to_xarray("buses")["spot_price"].dims == ("scenario_id", "stage_id", "block_id", "bus_id")
