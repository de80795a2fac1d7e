"""Intended differences from the LP of cobre-python, with numbers worked out by hand."""

import pytest
from small_cases import THERMALS, SmallCase, contract, group, hydro, line, source, thermal
from solving import lower_bound, simulate_trained, train
from systems_machines import groups_at_two_buses
from systems_network import rule
from systems_water import cascade

HOURS = 730.0


def test_line_losses_reduce_delivered_power(tmp_path):
    """45 MW at the far end need 50 MW at the near one when a tenth is lost."""
    case = SmallCase(
        buses=2,
        lines=[line(0, 0, 1, 100.0, 100.0, losses_percent=10.0, exchange_cost=0.0)],
        thermals=[thermal(0, 10.0, 500.0)],
        load={0: 0.0, 1: 45.0},
    )
    assert lower_bound(case, tmp_path) == pytest.approx(2 * 50.0 * 10.0 * HOURS)


def test_losses_apply_in_both_directions(tmp_path):
    case = SmallCase(
        buses=2,
        lines=[line(0, 0, 1, 100.0, 100.0, losses_percent=10.0, exchange_cost=0.0)],
        thermals=[thermal(0, 10.0, 500.0, bus=1)],
        load={0: 45.0, 1: 0.0},
    )
    assert lower_bound(case, tmp_path) == pytest.approx(2 * 50.0 * 10.0 * HOURS)


def test_cost_to_go_may_be_negative(tmp_path):
    """20 MW are sold at 30 $/MWh in each of three stages; a cost-to-go cut off at zero would forget two of them."""
    case = SmallCase(
        contracts=[contract(0, "export", -30.0, 20.0)], thermals=[thermal(0, 10.0, 50.0)], stages=3, load={0: 5.0}
    )
    assert lower_bound(case, tmp_path) == pytest.approx(3 * (25.0 * 10.0 - 20.0 * 30.0) * HOURS)


def test_rewards_of_sources_enter_cost_to_go(tmp_path):
    case = SmallCase(
        sources=[source(0, 20.0, curtailment_cost=5.0)], thermals=[thermal(0, 10.0, 50.0)], stages=3, load={0: 30.0}
    )
    assert lower_bound(case, tmp_path) == pytest.approx(3 * (10.0 * 10.0 - 20.0 * 5.0) * HOURS, abs=1e-3)


def test_limit_of_plant_applies_to_sum_over_two_buses(tmp_path):
    """30 m3/s for both buses together, not for each."""
    rows = [{"hydro_id": 0, "stage_id": stage, "max_turbined_m3s": 30.0} for stage in range(3)]
    case = groups_at_two_buses(inflow={0: 60.0}, load={0: 60.0, 1: 60.0}, tables={"constraints/hydro_bounds": rows})
    _, tables = simulate_trained(train(case, tmp_path), 1)
    assert tables["hydros"]["turbined_m3s"] == pytest.approx([30.0] * 6)


def test_minimum_from_bounds_table_is_enforced(tmp_path):
    rows = [{"hydro_id": 0, "stage_id": 0, "min_turbined_m3s": 12.0}]
    case = cascade(
        storage={0: 90.0}, inflow={0: 5.0}, thermals=[thermal(0, 1.0, 200.0)], tables={"constraints/hydro_bounds": rows}
    )
    case.hydros = [hydro(0, penalties={"turbined_cost": 3.0})]
    _, tables = simulate_trained(train(case, tmp_path), 1)
    assert tables["hydros"]["turbined_m3s"] == pytest.approx([12.0, 0.0, 0.0, 0.0])


def test_shortage_is_penalized_once(tmp_path):
    """The plant's own minimum and that of its group are the same 4 m3/s here."""
    rows = [{"hydro_id": 0, "stage_id": 0, "min_turbined_m3s": 4.0}]
    case = SmallCase(
        hydros=[hydro(0, storage=(0.0, 50.0), groups=[group(0, 0, (4.0, 50.0), (0.0, 50.0))], turbined=(4.0, 50.0))],
        thermals=THERMALS,
        load={0: 10.0},
        inflow={0: 0.0},
        storage={0: 0.0},
        method="none",
        tables={"constraints/hydro_bounds": rows},
    )
    assert lower_bound(case, tmp_path) == pytest.approx(2 * HOURS * (4.0 * 450.0 + 10.0 * 20.0))


def test_minimums_of_plant_out_of_service_are_free(tmp_path):
    case = SmallCase(
        hydros=[hydro(0, turbined=(3.0, 50.0), power=(2.0, 50.0), outflow=(5.0, None), entry_stage_id=1)],
        thermals=THERMALS,
        load={0: [20.0, 0.0]},
        inflow={0: [0.0, 6.0]},
        storage={0: 50.0},
    )
    trained = train(case, tmp_path)
    _, tables = simulate_trained(trained, 1)
    assert tables["costs"]["hydro_violation_cost"].tolist() == [0.0, 0.0]
    assert tables["costs"]["immediate_cost"][0] == pytest.approx(20.0 * 20.0 * HOURS)


@pytest.mark.parametrize(
    ("method", "missing"), [("truncation", 0.0), ("truncation_with_penalty", 0.0), ("penalty", 5.0)]
)
def test_negative_inflow_without_noise(method, missing, tmp_path):
    """Truncation makes every negative inflow zero, whether noise or the mean brought it there."""
    case = SmallCase(
        hydros=[hydro(0)], thermals=THERMALS, load={0: 10.0}, inflow={0: -5.0}, storage={0: 0.0}, method=method
    )
    expected = 2 * HOURS * (10.0 * 20.0 + missing * 700.0)
    assert lower_bound(case, tmp_path) == pytest.approx(expected)


def test_constraints_see_generation_and_curtailment_of_sources(tmp_path):
    """At least 4 of 10 MW are curtailed; availability 0.7 leaves 3 of 7."""

    def windy():
        return SmallCase(
            sources=[source(0, 10.0)],
            thermals=[thermal(0, 10.0, 50.0)],
            stages=3,
            load={0: 20.0},
            tables={
                "scenarios/non_controllable_stats": [
                    {"ncs_id": 0, "stage_id": stage, "mean": 0.7, "std": 0.0} for stage in range(3)
                ]
            },
        )

    case = rule("non_controllable_curtailment(0)", 4.0, None, base=windy)
    _, tables = simulate_trained(train(case, tmp_path), 1)
    assert tables["non_controllables"]["generation_mw"] == pytest.approx([3.0] * 3)
    assert tables["non_controllables"]["curtailment_mw"] == pytest.approx([4.0] * 3)
