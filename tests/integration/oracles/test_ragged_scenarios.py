"""External scenarios whose number differs by stage: inflows of simulated paths, and the cost of a policy."""

import numpy as np
import pyarrow.compute as pc
import pytest
from crafted_case import CraftedCase, Period, write_crafted

import cobre
import cobre.results
import cobre.run
from cobre.io.case import load_case
from cobre.stochastic.model import build_noise_model

COUNTS = (1, 2, 4)
SCENARIOS = 80


def inflow(stage: int, scenario: int) -> float:
    return 30.0 + 17.0 * stage + 3.0 * scenario


def test_all_scenarios_of_a_stage_are_sampled_and_no_others(tmp_path):
    case = CraftedCase(
        periods=[Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", openings=4) for m in (1, 2, 3)],
        inflow={(0, stage): (60.0, 20.0) for stage in range(3)},
        external=[
            (stage, scenario, 0, inflow(stage, scenario))
            for stage, count in enumerate(COUNTS)
            for scenario in range(count)
        ],
        source={"seed": 7, "inflow": {"scheme": "external"}},
        load_mw=150.0,
        rules=({"type": "iteration_limit", "limit": 5},),
        simulation={"selection": {"method": "sampled", "num_scenarios": SCENARIOS}},
    )
    folder = write_crafted(tmp_path / "case", case)
    cobre.run.run(folder, tmp_path / "run", threads=1)
    table = cobre.results.load_simulation_arrow(tmp_path / "run", "hydros")
    for stage, count in enumerate(COUNTS):
        met = table.filter(pc.equal(table["stage_id"], stage))["incremental_inflow_m3s"].to_pylist()
        assert len(met) == SCENARIOS
        assert {round(value, 9) for value in met} == {inflow(stage, scenario) for scenario in range(count)}


WEEKS_THEN_A_MONTH = [
    *(Period(f"2024-01-{day:02}", f"2024-01-{day + 7:02}", openings=6) for day in (1, 8, 15)),
    Period("2024-01-22", "2024-02-22", openings=6),
]
COUNTS_OF_WEEKS = (1, 1, 1, 5)
LOAD_MW = 190.0


def test_openings_have_mean_and_deviation_of_scenarios(tmp_path):
    """Weeks with one forecast, then a month with scenarios; without a reservoir each inflow determines its cost."""
    library = [[inflow(stage, scenario) for scenario in range(count)] for stage, count in enumerate(COUNTS_OF_WEEKS)]
    case = CraftedCase(
        periods=WEEKS_THEN_A_MONTH,
        inflow={(0, stage): (60.0, 20.0) for stage in range(4)},
        external=[(stage, k, 0, value) for stage, values in enumerate(library) for k, value in enumerate(values)],
        source={"seed": 7, "inflow": {"scheme": "external"}},
        load_mw=LOAD_MW,
        first_hm3=0.0,
        max_hm3=0.0,
    )
    openings = build_noise_model(load_case(write_crafted(tmp_path, case))).openings
    expected = 0.0
    for period, values, noise in zip(WEEKS_THEN_A_MONTH, library, openings, strict=True):
        drawn = np.mean(values) + np.std(values) * noise[:, 0]
        expected += period.all_hours * np.mean([cost_per_hour(value) for value in drawn])
    trained = cobre.train(tmp_path, threads=1)
    assert trained.lower_bound == pytest.approx(expected, rel=1e-9)
    simulated = cobre.simulate(tmp_path, trained.policy, scenarios=200, threads=1)
    of_weeks = sum(p.all_hours * cost_per_hour(v[0]) for p, v in zip(WEEKS_THEN_A_MONTH[:3], library, strict=False))
    possible = [of_weeks + WEEKS_THEN_A_MONTH[3].all_hours * cost_per_hour(value) for value in library[3]]
    met = {round(cost, 3) for cost in simulated.scenario_costs}
    assert met == {round(cost, 3) for cost in possible}


def cost_per_hour(inflow_m3s):
    """Return the cost of an hour: at most 120 m3/s are turbined, thermal plants run in merit order, then deficit."""
    missing = LOAD_MW - 0.8 * min(120.0, inflow_m3s)
    spent = 0.01 * max(0.0, inflow_m3s - 120.0)
    for price, most in ((40.0, 40.0), (110.0, 60.0), (300.0, 60.0), (5000.0, np.inf)):
        used = min(most, missing)
        missing, spent = missing - used, spent + price * used
    return spent
