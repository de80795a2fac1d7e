"""Limits and prices of every entity after all cascades."""

import numpy as np
import pytest
from small_cases import SmallCase, contract, group, hydro, line, pump, source, thermal

from cobre.io.case import load_case
from cobre.sddp.resolved import resolve

HOURS = (400.0, 300.0)


@pytest.fixture
def study(tmp_path):
    def build(**fields):
        fields = {"thermals": [thermal(0, 50.0, 100.0)], "stages": 3, "hours": HOURS, "load": {0: 10.0}} | fields
        return resolve(load_case(SmallCase(**fields).write(tmp_path)))

    return build


def test_thermals_by_stage_and_block(study):
    rows = [
        {"thermal_id": 0, "stage_id": 0, "max_generation_mw": 80.0, "cost_per_mwh": 55.0},
        {"thermal_id": 0, "stage_id": 1, "max_generation_mw": 70.0},
        {"thermal_id": 0, "stage_id": 1, "block_id": 1, "max_generation_mw": 60.0, "min_generation_mw": 5.0},
    ]
    plants = [thermal(0, 50.0, 100.0, least=2.0), thermal(1, 60.0, 30.0, entry_stage_id=1, exit_stage_id=2, least=4.0)]
    stages = study(thermals=plants, tables={"constraints/thermal_bounds": rows}).stages
    assert stages[0].thermal.max_mw.tolist() == [[80.0, 80.0], [0.0, 0.0]]
    assert stages[0].thermal.cost.tolist() == [[55.0, 55.0], [60.0, 60.0]]
    assert stages[1].thermal.max_mw.tolist() == [[70.0, 60.0], [30.0, 30.0]]
    assert stages[1].thermal.min_mw.tolist() == [[2.0, 5.0], [4.0, 4.0]]
    assert stages[2].thermal.max_mw.tolist() == [[100.0, 100.0], [0.0, 0.0]]
    assert stages[2].thermal.min_mw.tolist() == [[2.0, 2.0], [0.0, 0.0]]


def test_lines(study):
    lines = [line(0, 0, 1, 10.0, 8.0, losses_percent=4.0), line(1, 0, 1, 5.0, 5.0, exchange_cost=3.0, entry_stage_id=1)]
    tables = {
        "constraints/line_bounds": [{"line_id": 0, "stage_id": 0, "block_id": 1, "direct_mw": 6.0}],
        "constraints/penalty_overrides_line": [{"line_id": 0, "stage_id": 2, "exchange_cost": 9.0}],
    }
    resolved = study(buses=2, lines=lines, tables=tables)
    first, _, last = (stage.line for stage in resolved.stages)
    assert first.direct_mw.tolist() == [[10.0, 6.0], [0.0, 0.0]]
    assert first.reverse_mw.tolist() == [[8.0, 8.0], [0.0, 0.0]]
    assert first.exchange_cost.tolist() == [0.25, 3.0]
    assert last.exchange_cost.tolist() == [9.0, 3.0]
    assert last.direct_mw[1].tolist() == [5.0, 5.0]
    assert last.loss_fraction.tolist() == [0.04, 0.0]
    assert resolved.topology.line_source.tolist() == [0, 0]
    assert resolved.topology.line_target.tolist() == [1, 1]


def test_buses(study):
    tables = {"constraints/penalty_overrides_bus": [{"bus_id": 1, "stage_id": 1, "excess_cost": 7.0}]}
    factors = [{"block_id": 1, "factor": 1.2}, {"block_id": 0, "factor": 0.8}]
    documents = {
        "scenarios/load_factors.json": {"load_factors": [{"bus_id": 1, "stage_id": 1, "block_factors": factors}]}
    }
    deficit = [{"depth_mw": 5.0, "cost": 500.0}, {"depth_mw": None, "cost": 900.0}]
    loads = {0: 10.0, 1: [(20.0, 1.0), (21.0, 2.0), (22.0, 3.0)]}
    stages = study(buses=3, load=loads, deficit=deficit, tables=tables, documents=documents).stages
    middle = stages[1].bus
    assert middle.deficit_segments == (((5.0, 500.0), (np.inf, 900.0)),) * 3
    assert middle.excess_cost.tolist() == [0.5, 7.0, 0.5]
    assert middle.load_mean_mw.tolist() == [10.0, 21.0, 0.0]
    assert middle.load_std_mw.tolist() == [0.0, 2.0, 0.0]
    assert middle.load_factor.tolist() == [[1.0, 1.0], [0.8, 1.2], [1.0, 1.0]]


def test_sources(study):
    sources = [
        source(0, 30.0, exit_stage_id=2),
        source(1, 20.0, curtailment_cost=4.0, allow_curtailment=False),
    ]
    factors = [{"block_id": 0, "factor": 0.5}, {"block_id": 1, "factor": 1.5}]
    tables = {
        "constraints/ncs_bounds": [{"ncs_id": 1, "stage_id": 0, "available_generation_mw": 15.0}],
        "constraints/penalty_overrides_ncs": [{"ncs_id": 1, "stage_id": 0, "curtailment_cost": 5.0}],
        "scenarios/non_controllable_stats": [
            {"ncs_id": 0, "stage_id": stage, "mean": 0.5, "std": 0.1} for stage in range(3)
        ],
    }
    documents = {
        "scenarios/non_controllable_factors.json": {
            "non_controllable_factors": [{"ncs_id": 0, "stage_id": 0, "block_factors": factors}]
        }
    }
    stages = study(sources=sources, tables=tables, documents=documents).stages
    first, last = stages[0].source, stages[2].source
    assert first.is_active.tolist() == [True, True]
    assert first.available_mw.tolist() == [30.0, 15.0]
    assert first.may_curtail.tolist() == [True, False]
    assert first.curtailment_cost.tolist() == [2.0, 5.0]
    assert first.factor.tolist() == [[0.5, 1.5], [1.0, 1.0]]
    assert (first.mean.tolist(), first.std.tolist()) == ([0.5, 1.0], [0.1, 0.0])
    assert last.is_active.tolist() == [False, True]
    assert last.available_mw.tolist() == [0.0, 20.0]
    assert last.curtailment_cost.tolist() == [2.0, 4.0]


def test_pumps_and_contracts(study):
    plants = [hydro(0), hydro(1)]
    tables = {
        "constraints/pumping_bounds": [{"pumping_station_id": 0, "stage_id": 0, "block_id": 0, "max_m3s": 2.0}],
        "constraints/contract_bounds": [{"contract_id": 1, "stage_id": 0, "block_id": 1, "price_per_mwh": -9.0}],
    }
    resolved = study(
        hydros=plants,
        pumps=[pump(0, 1, 0, 5.0, least=1.0, exit_stage_id=1)],
        contracts=[contract(0, "import", 40.0, 10.0, least=1.0), contract(1, "export", -5.0, 8.0, entry_stage_id=0)],
        tables=tables,
    )
    first, second = resolved.stages[0], resolved.stages[1]
    assert first.pumping.max_m3s.tolist() == [[2.0, 5.0]]
    assert first.pumping.min_m3s.tolist() == [[1.0, 1.0]]
    assert second.pumping.max_m3s.tolist() == second.pumping.min_m3s.tolist() == [[0.0, 0.0]]
    assert first.contract.price.tolist() == [[40.0, 40.0], [-5.0, -9.0]]
    assert first.contract.min_mw.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert resolved.topology.contract_sign.tolist() == [1.0, -1.0]
    assert resolved.topology.pumping_source.tolist() == [1]
    assert resolved.topology.pumping_destination.tolist() == [0]


def test_hydro_limits(study):
    plant = hydro(0, storage=(10.0, 100.0), outflow=(1.0, 60.0), diversion={"downstream_id": 1, "max_flow_m3s": 7.0})
    rows = [
        {
            "hydro_id": 0,
            "stage_id": 1,
            "min_storage_hm3": 20.0,
            "max_storage_hm3": 90.0,
            "water_withdrawal_m3s": 3.0,
            "max_turbined_m3s": 40.0,
        },
        {
            "hydro_id": 0,
            "stage_id": 1,
            "block_id": 1,
            "min_turbined_m3s": 4.0,
            "max_generation_mw": 30.0,
            "min_generation_mw": 2.0,
            "max_outflow_m3s": 50.0,
            "min_outflow_m3s": 5.0,
            "max_diversion_m3s": 6.0,
            "min_spillage_m3s": 0.5,
            "max_spillage_m3s": 9.0,
        },
        {"hydro_id": 1, "stage_id": 1, "max_diversion_m3s": 2.0},  # without a channel: out of the system
    ]
    resolved = study(hydros=[plant, hydro(1)], storage={0: 50.0}, tables={"constraints/hydro_bounds": rows})
    before, after = resolved.stages[0].hydro, resolved.stages[1].hydro
    assert resolved.initial_storage_hm3.tolist() == [50.0, 0.0]
    assert before.min_storage_hm3.tolist() == [10.0, 0.0]
    assert (after.min_storage_hm3[0], after.max_storage_hm3[0]) == (20.0, 90.0)
    assert after.water_withdrawal_m3s.tolist() == [3.0, 0.0]
    assert after.max_turbined_m3s[0].tolist() == [40.0, 40.0]
    assert after.min_turbined_m3s[0].tolist() == [0.0, 4.0]
    assert after.max_generation_mw[0].tolist() == [50.0, 30.0]
    assert after.min_generation_mw[0].tolist() == [0.0, 2.0]
    assert after.max_outflow_m3s.tolist() == [[60.0, 50.0], [np.inf, np.inf]]
    assert after.min_outflow_m3s[0].tolist() == [1.0, 5.0]
    assert after.max_diversion_m3s.tolist() == [[7.0, 6.0], [2.0, 2.0]]
    assert after.min_spillage_m3s[0].tolist() == [0.0, 0.5]
    assert after.max_spillage_m3s.tolist() == [[np.inf, 9.0], [np.inf, np.inf]]
    assert resolved.topology.diversion_target.tolist() == [1, -1]


def test_unit_groups(study):
    groups = [
        group(3, bus=1, turbined=(0.0, 20.0), power=(0.0, 20.0)),
        group(1, turbined=(1.0, 30.0), power=(0.0, 30.0)),
    ]
    rows = [{"hydro_id": 0, "hydro_unit_group_id": 3, "stage_id": 1, "block_id": 0, "max_turbined_m3s": 12.0}]
    plants = [hydro(0, groups=groups, exit_stage_id=2), hydro(1, bus=1)]
    resolved = study(buses=2, hydros=plants, tables={"constraints/hydro_unit_group_bounds": rows})
    assert resolved.topology.group_hydro.tolist() == [0, 0, 1]
    assert resolved.topology.group_bus.tolist() == [0, 1, 1]
    assert resolved.stages[1].group.max_turbined_m3s.tolist() == [[30.0, 30.0], [12.0, 20.0], [50.0, 50.0]]
    assert resolved.stages[1].group.min_turbined_m3s[0].tolist() == [1.0, 1.0]
    assert resolved.stages[2].group.max_turbined_m3s.tolist() == [[0.0, 0.0], [0.0, 0.0], [50.0, 50.0]]


def test_plant_out_of_service_has_no_limits(study):
    plant = hydro(0, downstream=1, outflow=(5.0, 30.0), entry_stage_id=1, evaporation={"coefficients_mm": [100.0] * 12})
    geometry = [{"hydro_id": 0, "volume_hm3": volume, "height_m": 10.0, "area_km2": 1.0} for volume in (0.0, 100.0)]
    resolved = study(hydros=[plant, hydro(1)], tables={"system/hydro_geometry": geometry})
    before, after = resolved.stages[0].hydro, resolved.stages[1].hydro
    assert before.is_active.tolist() == [False, True]
    for name in ("min_outflow_m3s", "max_turbined_m3s", "max_generation_mw", "max_spillage_m3s"):
        assert getattr(before, name)[0].tolist() == [0.0, 0.0], name
    assert before.max_outflow_m3s[0].tolist() == [np.inf, np.inf]
    assert before.has_evaporation.tolist() == [False, False]
    assert after.has_evaporation.tolist() == [True, False]
    assert after.min_outflow_m3s[0].tolist() == [5.0, 5.0]
    assert resolved.topology.downstream.tolist() == [1, -1]


def test_prices_of_hydros(study):
    plants = [hydro(0), hydro(1, penalties={"spillage_cost": 8.0, "evaporation_violation_cost": 80.0})]
    rows = [
        {"hydro_id": 1, "stage_id": 1, "spillage_cost": 9.0, "water_withdrawal_violation_cost": 90.0},
        {"hydro_id": 0, "stage_id": 2, "evaporation_violation_cost": 70.0, "evaporation_violation_neg_cost": 71.0},
    ]
    penalties = {"evaporation_violation_pos_cost": 11.0, "water_withdrawal_violation_neg_cost": 12.0}
    tables = {"constraints/penalty_overrides_hydro": rows}
    prices = [stage.hydro for stage in study(hydros=plants, penalties=penalties, tables=tables).stages]
    assert [price.spillage_cost.tolist() for price in prices] == [[0.01, 8.0], [0.01, 9.0], [0.01, 8.0]]
    assert prices[0].inflow_nonnegativity_cost.tolist() == [700.0, 700.0]
    assert prices[0].evaporation_violation_pos_cost.tolist() == [11.0, 80.0]
    assert prices[0].evaporation_violation_neg_cost.tolist() == [5000.0, 80.0]
    assert prices[0].water_withdrawal_violation_pos_cost.tolist() == [600.0, 600.0]
    assert prices[0].water_withdrawal_violation_neg_cost.tolist() == [12.0, 12.0]
    assert prices[1].water_withdrawal_violation_neg_cost.tolist() == [12.0, 90.0]
    assert prices[2].evaporation_violation_pos_cost.tolist() == [70.0, 80.0]
    assert prices[2].evaporation_violation_neg_cost.tolist() == [71.0, 80.0]


def test_entities_stand_in_canonical_order(study):
    plants = [hydro(0, storage=(0.0, 1.0)), hydro(1, storage=(0.0, 2.0)), hydro(2, storage=(0.0, 3.0), downstream=0)]
    plants[0]["operational_start_date"] = "2024-06-01"
    resolved = study(hydros=plants, storage={0: 0.1, 1: 0.2, 2: 0.3})
    assert resolved.stages[0].hydro.max_storage_hm3.tolist() == [2.0, 3.0, 1.0]
    assert resolved.initial_storage_hm3.tolist() == [0.2, 0.3, 0.1]
    assert resolved.topology.downstream.tolist() == [-1, 2, -1]
