"""Newly drawn scenarios: as many as requested, independent of the number in the case."""

from pathlib import Path

import cobre

CASE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"


def case_with(scenarios):
    settings = {
        "config.simulation.scenario_source": {"seed": 7, "inflow": {"scheme": "out_of_sample"}},
        "config.simulation.selection": {"method": "sampled", "num_scenarios": scenarios},
    }
    return cobre.changed(cobre.load_case(CASE), settings)


def test_more_scenarios_than_in_the_case_are_simulated():
    policy = cobre.train(case_with(4), iterations=2, threads=1).policy
    more = cobre.simulate(case_with(4), policy, scenarios=9, threads=1)
    assert len(more.scenario_costs) == 9
    assert more.digest == cobre.simulate(case_with(9), policy, threads=1).digest
