"""Boundary policies exchanged with cobre-python: in both, the first stages cost as much as the whole study."""

import json
import subprocess
from dataclasses import replace

import pytest
from boundary_cases import AFTER, FIRST, WHOLE, water, water_and_power, with_boundary
from click.testing import CliRunner
from crafted_case import write_crafted
from peer import TIMEOUT_S, peer_bounds, peer_python
from small_cases import SmallCase, hydro, thermal
from tree_cases import drawn_tree

import cobre
import cobre.run
from cobre.cli.main import main
from cobre.export.layouts import export_run

RANDOM = {"inflow": {0: (10.0, 4.0), 1: (2.0, 1.0)}, "openings": 3, "iterations": 60, "forward_passes": 2}
RUN = "import sys, cobre; cobre.run.run(sys.argv[1], sys.argv[2], threads=1)"
REMEMBERING = {
    "hydros": [hydro(0)],
    "thermals": [thermal(0, 10.0, 20.0), thermal(1, 90.0, 60.0)],
    "openings": 3,
    "storage": {0: 40.0},
    "forward_passes": 2,
    "iterations": 40,
}
CASES = {
    "water": (water(WHOLE), water(FIRST, after=AFTER["alike"]), 1e-9),
    "water and power": (
        water_and_power(WHOLE, **RANDOM),
        water_and_power(FIRST, AFTER["alike"], **RANDOM),
        1e-6,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_our_exported_policy_is_their_boundary(name, tmp_path):
    whole, first, tolerance = CASES[name]
    cobre.run.run(whole.write(tmp_path / "whole"), tmp_path / "ours", threads=1)
    export_run(tmp_path / "ours", tmp_path / "exported")
    case = with_boundary(first.write(tmp_path / "first"), tmp_path / "exported" / "policy")
    cost = json.loads((tmp_path / "ours" / "summary.json").read_text())["lower_bound"]
    [bounds] = peer_bounds([case])
    assert bounds[-1][0] == pytest.approx(cost, rel=tolerance)
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(cost, rel=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_their_policy_is_our_boundary(name, tmp_path):
    whole, first, tolerance = CASES[name]
    command = [peer_python(), "-I", "-c", RUN, whole.write(tmp_path / "whole"), tmp_path / "theirs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    [bounds] = peer_bounds([tmp_path / "whole"])
    case = with_boundary(first.write(tmp_path / "first"), tmp_path / "theirs" / "policy")
    assert cobre.train(case, threads=1).lower_bound == pytest.approx(bounds[-1][0], rel=tolerance)


def test_our_exported_policy_of_inflows_with_memory_is_their_boundary(tmp_path):
    """Also check a first month with a lag on a month without statistics, which has no effect."""
    whole, first = (
        remembering(SmallCase(**REMEMBERING, stages=stages), tmp_path / name)
        for name, stages in (("whole", 4), ("first", 2))
    )
    cobre.run.run(whole, tmp_path / "ours", threads=1)
    export_run(tmp_path / "ours", tmp_path / "exported")
    cost = json.loads((tmp_path / "ours" / "summary.json").read_text())["lower_bound"]
    case = with_boundary(first, tmp_path / "exported" / "policy")
    [bounds] = peer_bounds([case])
    assert bounds[-1][0] == pytest.approx(cost, rel=1e-6)


@pytest.mark.parametrize("layout", ["cobre-python", "novomodelo"])
def test_policies_of_graphs_of_nodes_are_left_out(layout, tmp_path):
    """Peers refuse such a policy, so only the tables are written, for comparisons with official results."""
    case = write_crafted(tmp_path / "case", drawn_tree(1, branches=(2, 2)))
    cobre.run.run(case, tmp_path / "run", threads=1)
    arguments = ["export", str(tmp_path / "run"), "--to", layout, "--output", str(tmp_path / "exported")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "the policy is left out" in done.stderr
    assert not (tmp_path / "exported" / "policy").exists()
    assert list((tmp_path / "exported" / "training").glob("convergence.parquet"))


def remembering(case, folder):
    """Return inflows that remember the month before; months before the study have no statistics."""
    case = replace(
        case,
        inflow={0: [(18.0, 4.0)] * case.stages},
        load={0: 60.0},
        stage_fields={
            number: {"season_id": number, "state_variables": {"storage": True, "inflow_lags": True}}
            for number in range(case.stages)
        },
        tables={
            "scenarios/inflow_ar_coefficients": [
                {"hydro_id": 0, "stage_id": stage, "lag": 1, "coefficient": 0.4} for stage in range(case.stages)
            ]
        },
    )
    case.write(folder)
    months = [{"id": month, "label": f"M{month}", "month_start": month + 1} for month in range(12)]
    stages = json.loads((folder / "stages.json").read_text())
    stages |= {"season_definitions": {"cycle_type": "monthly", "seasons": months}}
    stages |= {"pre_study_stages": [{"id": -1, "start_date": "2023-12-01", "end_date": "2024-01-01", "season_id": 11}]}
    (folder / "stages.json").write_text(json.dumps(stages))
    conditions = json.loads((folder / "initial_conditions.json").read_text())
    december = {"hydro_id": 0, "start_date": "2023-12-01", "end_date": "2024-01-01", "value_m3s": 20.0}
    (folder / "initial_conditions.json").write_text(json.dumps(conditions | {"recent_observations": [december]}))
    return folder
