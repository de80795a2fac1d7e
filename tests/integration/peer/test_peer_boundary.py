"""Boundary policies exchanged with cobre-python: the first stages of a study cost what the whole costs, in both."""

import json
import subprocess

import pytest
from boundary_cases import AFTER, FIRST, WHOLE, water, water_and_power, with_boundary
from peer import TIMEOUT_S, peer_bounds, peer_python

import cobre
import cobre.run
from cobre.export.layouts import export_run

RANDOM = {"inflow": {0: (10.0, 4.0), 1: (2.0, 1.0)}, "openings": 3, "iterations": 60, "forward_passes": 2}
RUN = "import sys, cobre; cobre.run.run(sys.argv[1], sys.argv[2], threads=1)"
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
