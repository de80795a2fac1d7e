"""Tables of a simulation, worked out by hand."""

import numpy as np
import pytest
from known_systems import KNOWN
from small_cases import SmallCase, contract, hydro, line, pump, source, thermal
from solving import simulate_trained, train
from systems_machines import filling
from systems_network import RULES, all_entity_kinds, rule
from systems_water import THERMALS, cascade

from cobre.core.case import ABSENT_ID
from cobre.sddp.simulation.cost_tables import COMPONENTS

HOURS = 730.0


def simulate_tables(case, folder, scenarios=1):
    return simulate_trained(train(case, folder), scenarios)[1]


def test_thermal_system(tmp_path):
    """80 MW: 20 at 20 $, 25 at 60 $, 15 at 180 $, and a deficit of 20 at 1000 $."""
    tables = simulate_tables(SmallCase(thermals=THERMALS, load={0: 80.0}), tmp_path)
    assert tables["thermals"]["thermal_id"].tolist() == [0, 1, 2] * 2
    assert tables["thermals"]["generation_mw"].tolist() == [20.0, 25.0, 15.0] * 2
    assert tables["thermals"]["generation_cost"] == pytest.approx(
        [20 * 20 * HOURS, 25 * 60 * HOURS, 15 * 180 * HOURS] * 2
    )
    assert tables["buses"]["deficit_mwh"] == pytest.approx([20.0 * HOURS] * 2)
    assert tables["buses"]["spot_price"] == pytest.approx([1000.0] * 2)
    assert tables["costs"]["deficit_cost"] == pytest.approx([20.0 * 1000.0 * HOURS] * 2)
    assert tables["costs"]["block_id"].tolist() == [ABSENT_ID] * 2


def test_ids_and_numbers_have_their_types(tmp_path):
    tables = simulate_tables(all_entity_kinds(), tmp_path)
    assert set(tables) == {
        "costs",
        "hydros",
        "hydro_bus_generation",
        "thermals",
        "buses",
        "exchanges",
        "non_controllables",
        "contracts",
        "pumping_stations",
    }
    for columns in tables.values():
        for name, values in columns.items():
            assert values.dtype == (np.int32 if name.endswith("_id") else np.float64), name
        assert len({len(values) for values in columns.values()}) == 1


def test_contracts(tmp_path):
    case = SmallCase(
        contracts=[contract(0, "import", 70.0, 10.0), contract(1, "export", -30.0, 20.0)],
        thermals=[thermal(0, 20.0, 40.0), thermal(1, 100.0, 50.0)],
        load={0: 45.0},
        hours=(500.0, 230.0),
    )
    table = simulate_tables(case, tmp_path)["contracts"]
    assert table["contract_id"].tolist() == [0, 0, 1, 1] * 2
    assert table["block_id"].tolist() == [0, 1] * 4
    assert table["power_mw"] == pytest.approx([5.0, 5.0, 0.0, 0.0] * 2)
    assert table["price_per_mwh"].tolist() == [70.0, 70.0, -30.0, -30.0] * 2
    assert table["total_cost"] == pytest.approx([5.0 * 70.0 * 500.0, 5.0 * 70.0 * 230.0, 0.0, 0.0] * 2)


def test_sources(tmp_path):
    """8 of 20 MW are enough in the first block; the second takes all of them."""
    factors = [{"block_id": 0, "factor": 1.0}, {"block_id": 1, "factor": 0.5}]
    given = [{"ncs_id": 0, "stage_id": stage, "block_factors": factors} for stage in range(2)]
    case = SmallCase(
        sources=[source(0, 20.0, curtailment_cost=3.0)],
        thermals=[thermal(0, 50.0, 40.0)],
        load={0: 8.0},
        hours=(500.0, 230.0),
        documents={
            "scenarios/non_controllable_factors.json": {"non_controllable_factors": given},
            "scenarios/load_factors.json": {
                "load_factors": [
                    {
                        "bus_id": 0,
                        "stage_id": stage,
                        "block_factors": [{"block_id": 0, "factor": 1.0}, {"block_id": 1, "factor": 2.0}],
                    }
                    for stage in range(2)
                ]
            },
        },
    )
    case.documents["penalties.json"] = case.default_documents()["penalties.json"] | {
        "bus": {"deficit_segments": [{"depth_mw": None, "cost": 1000.0}], "excess_cost": 5.0}
    }
    tables = simulate_tables(case, tmp_path)
    table = tables["non_controllables"]
    assert table["available_mw"].tolist() == [20.0, 10.0] * 2
    assert table["generation_mw"] == pytest.approx([8.0, 10.0] * 2)
    assert table["curtailment_mwh"] == pytest.approx([12.0 * 500.0, 0.0] * 2)
    assert table["curtailment_cost"] == pytest.approx([3.0 * 12.0 * 500.0, 0.0] * 2)
    assert tables["costs"]["curtailment_cost"] == pytest.approx([3.0 * 12.0 * 500.0] * 2)
    reward = -3.0 * (20.0 * 500.0 + 10.0 * 230.0)
    assert tables["costs"]["non_controllable_reward"] == pytest.approx([reward] * 2)


def test_lines_and_their_losses(tmp_path):
    case = SmallCase(
        buses=2,
        lines=[line(0, 0, 1, 100.0, 100.0, losses_percent=10.0, exchange_cost=0.5)],
        thermals=[thermal(0, 10.0, 500.0), thermal(1, 40.0, 20.0, bus=1)],
        load={0: [0.0, 50.0], 1: [45.0, 0.0]},
    )
    case.thermals[0]["exit_stage_id"] = 1
    case.thermals[1]["generation"]["max_mw"] = 200.0
    tables = simulate_tables(case, tmp_path)
    table = tables["exchanges"]
    assert table["direct_flow_mw"] == pytest.approx([50.0, 0.0])
    assert table["reverse_flow_mw"] == pytest.approx([0.0, 50.0 / 0.9])
    assert table["net_flow_mw"] == pytest.approx([50.0, -50.0 / 0.9])
    assert table["losses_mwh"] == pytest.approx([5.0 * HOURS, 5.0 / 0.9 * HOURS])
    assert table["exchange_cost"] == pytest.approx([0.5 * 50.0 * HOURS, 0.5 * 50.0 / 0.9 * HOURS])
    assert tables["buses"]["spot_price"] == pytest.approx([10.0, 10.5 / 0.9, 40.5 / 0.9, 40.0])


def test_pumps(tmp_path):
    case = cascade(pumps=[pump(0, 2, 0, 6.0, least=6.0, rate=0.5)], hours=(500.0, 230.0))
    table = simulate_tables(case, tmp_path)["pumping_stations"]
    assert table["pumped_flow_m3s"] == pytest.approx([6.0] * 8)
    assert table["pumped_volume_hm3"] == pytest.approx([6.0 * 0.0036 * 500.0, 6.0 * 0.0036 * 230.0] * 4)
    assert table["energy_consumption_mwh"] == pytest.approx([3.0 * 500.0, 3.0 * 230.0] * 4)


def test_water_value_equals_the_saved_thermal_cost(tmp_path):
    """One hm3 is 1e6 / 3600 MWh at 1 MW per m3/s, less what the turbine costs; thermal power costs 60 $ here."""
    case = SmallCase(
        hydros=[hydro(0)], thermals=[thermal(0, 60.0, 200.0)], load={0: 100.0}, inflow={0: 10.0}, storage={0: 50.0}
    )
    tables = simulate_tables(case, tmp_path)
    assert tables["hydros"]["water_value_per_hm3"] == pytest.approx([(60.0 - 0.005) * 1e6 / 3600.0] * 2)


def test_chronological_blocks_continue_final_storage(tmp_path):
    table = simulate_tables(cascade(hours=(500.0, 230.0), block_mode="chronological"), tmp_path)["hydros"]
    of_first = table["hydro_id"] == 0
    first, last = table["storage_initial_hm3"][of_first], table["storage_final_hm3"][of_first]
    assert first[0] == 50.0
    assert first[1:].tolist() == last[:-1].tolist()


def test_soft_volumes_have_their_costs(tmp_path):
    tables = simulate_tables(filling(penalties={"storage_violation_below_cost": 2.0}), tmp_path)
    below = tables["hydros"]["storage_violation_below_hm3"].reshape(4, 2)[:, 1]
    assert below == pytest.approx([0.0, 0.0, *below[2:]])
    assert below[3] == pytest.approx(30.0)
    assert tables["costs"]["storage_violation_cost"] == pytest.approx(2.0 * below)


@pytest.mark.parametrize("name", KNOWN)
def test_components_add_up_to_the_immediate_cost(name, tmp_path):
    costs = simulate_tables(KNOWN[name][0](), tmp_path)["costs"]
    assert sum(costs[component] for component in COMPONENTS) == pytest.approx(costs["immediate_cost"], rel=1e-10)
    assert costs["immediate_cost"] + costs["future_cost"] == pytest.approx(costs["total_cost"])


def test_slacks_of_constraints_are_a_component(tmp_path):
    costs = simulate_tables(rule("thermal_generation(0)", *RULES["thermal_generation(0)"]), tmp_path)["costs"]
    assert costs["generic_violation_cost"].max() > 0.0
    assert sum(costs[component] for component in COMPONENTS) == pytest.approx(costs["immediate_cost"], rel=1e-10)


def test_reservoirs_keep_the_balance(tmp_path):
    """Volumes, flows and slacks of the table add up for every plant of a cascade."""
    table = simulate_tables(KNOWN["withdrawal_with_cheap_violation"][0](), tmp_path)["hydros"]
    shape = (4, 3)
    outflow = table["outflow_m3s"].reshape(shape)
    arriving = np.concatenate([np.zeros((4, 1)), outflow[:, :-1]], axis=1)
    withdrawn = np.array([2.0, 6.0, 0.0]) - table["water_withdrawal_violation_neg_m3s"].reshape(shape)
    gain = table["incremental_inflow_m3s"] + table["inflow_nonnegativity_slack_m3s"]
    net = gain.reshape(shape) + arriving - outflow - withdrawn
    change = (table["storage_final_hm3"] - table["storage_initial_hm3"]).reshape(shape)
    assert change == pytest.approx(0.0036 * HOURS * net, abs=1e-8)
