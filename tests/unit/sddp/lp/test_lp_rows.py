"""Rows of stage LPs, coefficient by coefficient."""

import pytest
from small_cases import GEOMETRY, THERMALS, SmallCase, contract, group, hydro, line, pump, source
from solving import inputs_of, limits_of, matrix_of, problem_of
from systems_machines import filling, planes, planes_at_two_buses
from systems_water import cascade, plant_that_enters_during_study

TAU = 0.0036 * 730.0


def first_stage(case, folder):
    return problem_of(case, folder).stages[0]


def test_releases_enter_balance_of_downstream_plant(tmp_path):
    lp = first_stage(cascade(), tmp_path)
    assert matrix_of(lp)["water_balance[1,0]"] == pytest.approx(
        {
            "storage[1,0]": 1.0,
            "turbined[1,0]": TAU,
            "spilled[1,0]": TAU,
            "turbined[0,0]": -TAU,
            "spilled[0,0]": -TAU,
            "inflow_slack[1]": -TAU,
        }
    )
    assert inputs_of(lp)["water_balance[1,0]"] == pytest.approx({"v1": 1.0, "z1": TAU})


def test_plant_out_of_service_keeps_storage_and_passes_inflow(tmp_path):
    lp = first_stage(plant_that_enters_during_study(), tmp_path)
    rows = matrix_of(lp)
    assert rows["water_balance[1,0]"] == {"storage[1,0]": 1.0}
    assert rows["water_balance[2,0]"] == pytest.approx(
        {
            "storage[2,0]": 1.0,
            "turbined[2,0]": TAU,
            "spilled[2,0]": TAU,
            "turbined[0,0]": -TAU,
            "spilled[0,0]": -TAU,
            "inflow_slack[2]": -TAU,
        }
    )
    assert inputs_of(lp)["water_balance[2,0]"] == pytest.approx({"v2": 1.0, "z1": TAU, "z2": TAU})
    assert "turbined[1,0]" not in limits_of(lp)


def test_pumps_lift_water_and_take_power(tmp_path):
    case = cascade(pumps=[pump(0, 2, 0, 12.0, rate=0.5)], hours=(500.0, 230.0))
    rows = matrix_of(first_stage(case, tmp_path))
    assert rows["water_balance[2,0]"]["pumped[0,1]"] == pytest.approx(0.0036 * 230.0)
    assert rows["water_balance[0,0]"]["pumped[0,1]"] == pytest.approx(-0.0036 * 230.0)
    assert rows["power_balance[0,1]"]["pumped[0,1]"] == -0.5


def test_power_balance_has_all_sources_and_sinks(tmp_path):
    case = cascade(
        contracts=[contract(0, "import", 70.0, 10.0), contract(1, "export", -30.0, 20.0)],
        sources=[source(0, 10.0)],
        productivity={0: 0.8, 1: 0.5, 2: 1.1},
    )
    assert matrix_of(first_stage(case, tmp_path))["power_balance[0,0]"] == pytest.approx(
        {
            "turbined[0,0]": 0.8,
            "turbined[1,0]": 0.5,
            "turbined[2,0]": 1.1,
            "thermal[0,0]": 1.0,
            "thermal[1,0]": 1.0,
            "thermal[2,0]": 1.0,
            "source[0,0]": 1.0,
            "contract[0,0]": 1.0,
            "contract[1,0]": -1.0,
            "deficit[0,0,0]": 1.0,
            "excess[0,0]": -1.0,
        }
    )


def test_lines_lose_a_share_at_the_far_end(tmp_path):
    case = SmallCase(buses=2, lines=[line(0, 0, 1, 9.0, 7.0, losses_percent=4.0)], thermals=THERMALS, load={0: 5.0})
    lp = first_stage(case, tmp_path)
    rows, limits = matrix_of(lp), limits_of(lp)
    assert (rows["power_balance[0,0]"]["direct[0,0]"], rows["power_balance[1,0]"]["direct[0,0]"]) == (-1.0, 0.96)
    assert (rows["power_balance[1,0]"]["reverse[0,0]"], rows["power_balance[0,0]"]["reverse[0,0]"]) == (-1.0, 0.96)
    assert (limits["direct[0,0]"], limits["reverse[0,0]"]) == ((0.0, 9.0), (0.0, 7.0))


def test_chronological_blocks_have_separate_volumes(tmp_path):
    lp = first_stage(cascade(hours=(500.0, 230.0), block_mode="chronological"), tmp_path)
    rows, inputs = matrix_of(lp), inputs_of(lp)
    assert rows["water_balance[0,1]"] == pytest.approx(
        {
            "storage[0,1]": 1.0,
            "storage[0,0]": -1.0,
            "turbined[0,1]": 0.0036 * 230.0,
            "spilled[0,1]": 0.0036 * 230.0,
            "inflow_slack[0]": -0.0036 * 230.0,
        }
    )
    assert inputs["water_balance[0,0]"] == pytest.approx({"v0": 1.0, "z0": 0.0036 * 500.0})
    assert inputs["water_balance[0,1]"] == pytest.approx({"z0": 0.0036 * 230.0})


def test_groups_at_two_buses_share_the_limits_of_their_plant(tmp_path):
    machines = [group(0, 0, (0.0, 20.0), (0.0, 18.0)), group(1, 1, (0.0, 25.0), (0.0, 30.0))]
    case = SmallCase(
        buses=2,
        hydros=[hydro(0, groups=machines, turbined=(0.0, 45.0), power=(0.0, 48.0))],
        productivity={0: 0.9},
        thermals=THERMALS,
        load={0: 10.0},
        storage={0: 10.0},
    )
    lp = first_stage(case, tmp_path)
    rows, limits = matrix_of(lp), limits_of(lp)
    assert rows["max_turbined[0,0]"] == {"turbined[0,0]": 1.0, "turbined[1,0]": 1.0}
    assert rows["max_generation[0,0]"] == {"turbined[0,0]": 0.9, "turbined[1,0]": 0.9}
    assert limits["turbined[0,0]"] == pytest.approx((0.0, 20.0))
    assert limits["turbined[1,0]"] == pytest.approx((0.0, 25.0))
    assert rows["power_balance[1,0]"]["turbined[1,0]"] == 0.9
    assert "turbined[1,0]" not in rows["power_balance[0,0]"]


def test_evaporation_follows_the_mean_volume(tmp_path):
    case = SmallCase(
        hydros=[hydro(0, storage=(10.0, 100.0), evaporation={"coefficients_mm": [150.0] * 12})],
        thermals=THERMALS,
        load={0: 10.0},
        storage={0: 60.0},
        tables={"system/hydro_geometry": GEOMETRY[:3]},
    )
    lp = first_stage(case, tmp_path)
    # January: 744 h; around 55 hm3 the area is 4.25 km2 and grows by 5 / 60 km2 for each hm3
    slope = 150.0 * (5.0 / 60.0) / (3.6 * 744.0)
    at_most = 2.0 * (150.0 * (4.25 + 45.0 * 5.0 / 60.0) / (3.6 * 744.0))
    assert matrix_of(lp)["evaporation[0,0]"] == pytest.approx(
        {
            "evaporated[0,0]": 1.0,
            "storage[0,0]": -slope / 2.0,
            "evaporation_less[0,0]": 1.0,
            "evaporation_more[0,0]": -1.0,
        }
    )
    assert inputs_of(lp)["evaporation[0,0]"] == pytest.approx({"v0": slope / 2.0})
    assert limits_of(lp)["evaporated[0,0]"] == pytest.approx((-at_most, at_most))
    assert matrix_of(lp)["water_balance[0,0]"]["evaporated[0,0]"] == pytest.approx(TAU)


def test_power_stays_below_every_plane(tmp_path):
    lp = first_stage(planes(), tmp_path)
    rows = matrix_of(lp)
    assert rows["plane_0[0,0]"] == pytest.approx(
        {"generation[0,0]": 1.0, "turbined[0,0]": -0.8, "spilled[0,0]": 0.01, "storage[0,0]": -0.01}
    )
    assert inputs_of(lp)["plane_0[2,0]"] == pytest.approx({"v0": 0.03})
    assert rows["power_balance[0,0]"]["generation[0,0]"] == 1.0
    assert "turbined[0,0]" not in rows["power_balance[0,0]"]


def test_machines_at_several_buses_share_a_plane(tmp_path):
    rows = matrix_of(first_stage(planes_at_two_buses(), tmp_path))
    assert rows["plane_1[0,0]"] == pytest.approx(
        {
            "generation[1,0]": 1.0,
            "turbined[1,0]": -0.8,
            "spilled[0,0]": 0.01 * 25.0 / 45.0,
            "storage[0,0]": -0.01 * 25.0 / 45.0,
        }
    )


def test_filling_plant_has_target_and_no_generation(tmp_path):
    lp = first_stage(filling(), tmp_path)
    rows, limits = matrix_of(lp), limits_of(lp)
    assert rows["filling_target[1]"] == {"storage[1,0]": 1.0, "filling_below[1]": 1.0}
    assert limits["storage[1,0]"] == pytest.approx((0.0, 80.0))
    assert "turbined[1,0]" not in limits
    target = lp.program.row_lower[lp.program.names.rows.index("filling_target[1]")]
    scale = lp.program.row_scale[lp.program.names.rows.index("filling_target[1]")]
    assert target / scale == pytest.approx(30.0 - 0.0036 * 730.0 * 7.0)


def test_filled_plant_has_soft_minimum_after_entry(tmp_path):
    lp = problem_of(filling(), tmp_path).stages[2]
    assert matrix_of(lp)["soft_min_storage[1]"] == {"storage[1,0]": 1.0, "storage_below[1]": 1.0}
    assert limits_of(lp)["storage[1,0]"] == pytest.approx((0.0, 80.0))
    assert limits_of(lp)["turbined[1,0]"] == pytest.approx((0.0, 50.0))


def test_results_do_not_depend_on_the_order_of_declaration(tmp_path):
    first = problem_of(cascade(), tmp_path / "a")
    turned = cascade()
    turned.hydros, turned.thermals = turned.hydros[::-1], turned.thermals[::-1]
    second = problem_of(turned, tmp_path / "b")
    for one, other in zip(first.stages, second.stages, strict=True):
        assert matrix_of(one) == matrix_of(other)
        assert limits_of(one) == limits_of(other)
