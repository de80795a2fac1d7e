"""External scenarios that are not equally many in all stages: what simulated paths meet."""

import pyarrow.compute as pc
from crafted_case import CraftedCase, Period, write_crafted

import cobre.results
import cobre.run

COUNTS = (1, 2, 4)
SCENARIOS = 80


def inflow(stage: int, scenario: int) -> float:
    return 30.0 + 17.0 * stage + 3.0 * scenario


def test_every_scenario_of_a_stage_is_met_and_nothing_else(tmp_path):
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
