"""The note on a cost that is mostly penalties."""

import pyarrow as pa

from cobre.study.cost_note import PENALTIES, cost_note


def tables(thermal, outflow, deficit=0.0):
    zeros = {name: [0.0, 0.0] for name in PENALTIES}
    costs = zeros | {
        "immediate_cost": [thermal + outflow + deficit] * 2,
        "discount_factor": [1.0, 0.9],
        "outflow_violation_below_cost": [outflow] * 2,
        "deficit_cost": [deficit] * 2,
    }
    hydros = {"hydro_id": [3, 7], "outflow_slack_below_m3s": [0.0, 12.0]}
    buses = {"bus_id": [0, 1], "deficit_mwh": [30.0, 10.0]}
    found = {"costs": pa.table(costs), "hydros": pa.table(hydros), "buses": pa.table(buses)}
    return lambda name, columns: [found[name].slice(row, 1).select(columns) for row in range(2)]


def test_cost_without_penalties_has_no_note():
    assert cost_note(tables(thermal=60.0, outflow=40.0)) is None


def test_note_names_dominant_penalty_and_plant():
    note = cost_note(tables(thermal=0.1, outflow=99.9))
    assert note == "99.9 % of the simulated cost is outflow below its minimum at plant 7"


def test_note_adds_penalties_and_names_largest():
    note = cost_note(tables(thermal=20.0, outflow=30.0, deficit=50.0))
    assert note == "80.0 % of the simulated cost is penalties, 50.0 % deficit at 2 buses, 75 % of it at 0"
