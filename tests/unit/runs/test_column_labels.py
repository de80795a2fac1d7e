"""Units and titles of result columns."""

import pytest

from cobre.runs.labels import COST_COMPONENTS, unit_of_column
from cobre.sddp.simulation.cost_tables import ANTICIPATED_COST, COMPONENTS

UNITS = {
    "generation_mw": "MW",
    "load_mwh": "MWh",
    "storage_final_hm3": "hm3",
    "spillage_m3s": "m3/s",
    "water_value_per_hm3": "$/hm3",
    "price_per_mwh": "$/MWh",
    "spot_price": "$/MWh",
    "productivity_mw_per_m3s": "MW/(m3/s)",
    "deficit_cost": "$",
    "stage_id": "",
}


@pytest.mark.parametrize(("column", "unit"), UNITS.items())
def test_unit_follows_the_longest_ending_of_a_column(column, unit):
    assert unit_of_column(column) == unit


def test_every_component_of_the_cost_has_a_title():
    assert set(COST_COMPONENTS) == {*COMPONENTS, ANTICIPATED_COST}
