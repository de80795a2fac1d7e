"""Cases and policies as notebooks show them, and any table as a figure."""

from dataclasses import replace

import pytest
from report_page import EXAMPLE

import cobre


@pytest.fixture(scope="module")
def case():
    return cobre.load_case(EXAMPLE)


@pytest.fixture(scope="module")
def trained(case):
    return cobre.train(case, iterations=2, threads=1)


@pytest.fixture(scope="module")
def simulated(case, trained):
    return cobre.simulate(case, trained.policy, scenarios=6, threads=1)


def test_html_of_a_case(case):
    html = replace(case, name="<b>x</b>")._repr_html_()
    assert "<b>x</b>" not in html
    assert "hydro plants" in html
    assert "hm³ of storage" in html
    assert len(html) < 3000


def test_html_of_a_policy(trained):
    html = trained.policy._repr_html_()
    assert "cuts" in html
    assert "storage" in html
    assert len(html) < 2000


def test_every_table_of_scenarios_has_a_figure(simulated):
    plotted = 0
    for name, table in simulated.tables.items():
        if "scenario_id" not in table.column_names:
            continue
        column = next(column for column in table.column_names if not column.endswith("_id"))
        owner = [name for name in table.column_names if name.endswith("_id")][3:]
        entity = table[owner[0]][0].as_py() if owner else None
        assert simulated.plot(name, column, entity).axes
        plotted += 1
    assert plotted >= 4


def test_energy_is_added_and_other_numbers_are_averaged_over_blocks(simulated):
    rows = simulated.to_pandas("hydros")
    rows = rows[rows["hydro_id"] == 0].groupby(["scenario_id", "stage_id"])
    for column, expected in (
        ("generation_mwh", rows["generation_mwh"].sum()),
        ("turbined_m3s", rows["turbined_m3s"].mean()),
    ):
        line = simulated.plot("hydros", column, entity=0).axes[0].lines[0].get_ydata()
        median = expected.unstack().median()
        scale = median.iloc[0] / line[0]
        assert line * scale == pytest.approx(median.to_numpy())
        assert scale == pytest.approx(round(scale)), "only a power of ten lies between"


def test_impossible_plots_raise_value_error(simulated):
    with pytest.raises(ValueError, match="has no 'happiness'"):
        simulated.plot("hydros", "happiness")
    with pytest.raises(ValueError, match="there are 0, 1"):
        simulated.plot("hydros", "spillage_m3s", entity=9)
    with pytest.raises(ValueError, match="choose one hydro_id"):
        simulated.plot("hydros", "water_value_per_hm3")


def test_tables_become_arrays(trained, simulated):
    assert trained.to_xarray()["lower_bound"].dims == ("iteration",)
    assert simulated.to_xarray("buses")["spot_price"].dims == ("scenario_id", "stage_id", "block_id", "bus_id")
