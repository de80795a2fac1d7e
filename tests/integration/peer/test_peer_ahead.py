"""Deliveries known ahead, through cobre-python: bounds, and the volumes and decisions of its simulations."""

import json
import subprocess

import pytest
from ahead_cases import ALIKE, DEGENERATE_AT_FIRST
from peer import PROGRAM, TIMEOUT_S, peer_python, peer_tables

import cobre
import cobre.results
import cobre.run
from cobre.export.layouts import export_run

TABLES = {
    "thermals": ("stage_id", "thermal_id", "block_id", "is_anticipated", "anticipated_committed_mw"),
    "in_transit": ("stage_id", "hydro_id", "lag", "in_transit_volume_hm3", "delayed_arrival_hm3"),
}
# Where decisions are unique, so that every number of the tables must be the same.
UNIQUE = (
    "lead of two stages",
    "exit before the end",
    "250 hours over uneven stages",
    "deliveries after the study",
    "1000 hours under way",
    "2500 hours under way",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ahead")
    return {name: make().write(folder / str(number)) for number, (name, make) in enumerate(ALIKE.items())}


@pytest.fixture(scope="module")
def theirs(folders):
    return dict(zip(folders, peer_tables(folders.values(), TABLES), strict=True))


@pytest.mark.parametrize("name", list(ALIKE))
def test_bounds_match_peer(name, folders, theirs):
    ours = cobre.train(folders[name], threads=1)
    lower_bounds = [lower for lower, _ in theirs[name]["bounds"]]
    assert ours.lower_bound == pytest.approx(lower_bounds[-1], rel=1e-6 if "uncertain" in name else 1e-9)
    if name not in DEGENERATE_AT_FIRST:
        assert ours.history[0].lower_bound == pytest.approx(lower_bounds[0], rel=1e-9)


@pytest.mark.parametrize("name", UNIQUE)
def test_simulated_tables_match_peer(name, folders, theirs, tmp_path):
    cobre.run.run(folders[name], tmp_path, threads=1)
    for table, columns in TABLES.items():
        expected = theirs[name][table]
        if not expected:
            continue
        ours = cobre.results.load_simulation_arrow(tmp_path, table)
        rows = sorted(zip(*(ours[column].to_pylist() for column in columns), strict=True), key=str)
        for found, wanted in zip(rows, sorted(map(tuple, expected), key=str), strict=True):
            assert found == pytest.approx(wanted, abs=1e-6), (table, found, wanted)


def test_policies_are_exchanged_in_both_directions(folders, tmp_path):
    """Exchange commitments with leads of two and three stages, and water in transit: costs stay the same."""
    case, exported = folders["both"], tmp_path / "exported"
    cobre.run.run(case, tmp_path / "ours", threads=1)
    export_run(tmp_path / "ours", exported)
    command = [peer_python(), "-I", PROGRAM.with_name("peer_policy.py"), "cobre", case, exported, tmp_path / "theirs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    [cost] = json.loads(done.stdout.splitlines()[-1])["costs"]
    assert cost == pytest.approx(cost_of(tmp_path / "ours"), rel=1e-9)
    study = cobre.Study(case, output_dir=tmp_path / "back")
    study.simulate(study.load_policy(exported), tmp_path / "back")
    assert cost_of(tmp_path / "back") == pytest.approx(cost, rel=1e-9)


def cost_of(run):
    """Return the cost of the one scenario, discounted to the first stage."""
    costs = cobre.results.load_simulation_arrow(run, "costs")
    return sum(
        a * b for a, b in zip(*(costs[n].to_pylist() for n in ("immediate_cost", "discount_factor")), strict=True)
    )
