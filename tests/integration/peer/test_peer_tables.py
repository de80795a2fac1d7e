"""Tables and policies of cobre-python and of Cobre, side by side: columns, types, and every number that is unique."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from peer import peer_python
from peer_scripts import SIMULATE_OWN, SIMULATE_THEIRS, TABLES, WARM_START
from test_peer_scripts import EXAMPLES, differences, run_script

pytestmark = pytest.mark.long
CASES = ["two_reservoirs", "four_regions"]
# Constant there, contrary to its own dictionary; see the page on scripts for cobre-python.
CODES = {"operative_state_code", "storage_binding_code"}
MEASURED = {"time_forward_ms", "time_backward_ms", "time_total_ms"}
# Optima that are not unique: blocks and plants share a volume of water in more than one way.
SHARED_OUT = {"turbined_m3s", "outflow_m3s", "generation_mw", "generation_mwh", "generation_cost"}
LINES = {"direct_flow_mw", "reverse_flow_mw", "net_flow_mw", "net_flow_mwh", "exchange_cost"}
# Columns that depend only on data, not on decisions.
GIVEN = {
    "hydros": {
        "scenario_id", "stage_id", "node_id", "block_id", "hydro_id", "inflow_m3s", "incremental_inflow_m3s",
        "incremental_inflow_energy_mw", "equivalent_productivity_mw_per_m3s", "accumulated_productivity_mw_per_m3s",
        "integrated_equivalent_productivity_mw_per_m3s", "integrated_accumulated_productivity_mw_per_m3s",
    },
    "inflow_lags": {"scenario_id", "stage_id", "node_id", "hydro_id", "lag_index", "inflow_m3s"},
    "buses": {"scenario_id", "stage_id", "node_id", "block_id", "bus_id", "load_mw", "load_mwh"},
    "non_controllables": {"scenario_id", "stage_id", "non_controllable_id", "available_mw"},
    "convergence": {"iteration", "cuts_added", "cuts_active", "forward_passes", "lp_solves", "upper_bound_kind"},
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def both(request, tmp_path_factory):
    """Return the name of a case, the peer's results, and ours."""
    python = peer_python()
    folder = tmp_path_factory.mktemp(request.param)
    case = EXAMPLES / request.param
    theirs = run_script(python, ["-I"], TABLES, case, folder / "theirs")
    return request.param, theirs, run_script(sys.executable, [], TABLES, case, folder / "ours")


def test_no_column_is_missing(both):
    _, theirs, ours = both
    for name, columns in theirs["tables"].items():
        known = ours["tables"][name]
        if theirs["values"][name]["scenario_id" if "scenario_id" in columns else "iteration"]:  # empty ones are bare
            assert {column: known.get(column) for column in columns} == columns
            assert [column for column in known if column in columns] == list(columns)


def test_unique_numbers_match_peer(both):
    case, theirs, ours = both
    for name, columns in theirs["tables"].items():
        chosen = set(columns) - CODES - MEASURED - SHARED_OUT - LINES
        if case != "two_reservoirs":
            chosen = GIVEN.get(name, set())
        mine, its = ({column: part["values"][name].get(column, []) for column in chosen} for part in (ours, theirs))
        assert differences(mine, its, name) == []


def test_codes_match_peer_dictionary(both):
    """cobre-python writes constants; ours are the codes by its dictionary."""
    _, theirs, ours = both
    for name, columns in theirs["values"].items():
        for code in CODES & columns.keys():
            assert len(set(columns[code])) == 1
            assert set(ours["values"][name][code]) <= ({0, 2} if code == "operative_state_code" else {0, 1, 2, 3})


def test_facts_and_cuts_have_the_same_keys(both):
    _, theirs, ours = both
    for part in ("training", "simulation"):
        for name, keys in theirs[part].items():
            assert name in ours[part]
            assert set(keys or ()) <= set(ours[part][name] or ())
    for part in ("metadata", "producer", "cut"):
        assert set(theirs[part]) <= set(ours[part])
    for part in ("cut_ids", "manifests", "priced", "coefficients", "tree"):
        assert differences(ours[part], theirs[part], part) == []


@pytest.mark.parametrize("case", CASES)
def test_peer_policy_can_be_simulated_here(tmp_path, case):
    theirs = run_script(peer_python(), ["-I"], SIMULATE_OWN, EXAMPLES / case, tmp_path / "theirs")
    ours = run_script(sys.executable, [], SIMULATE_THEIRS, EXAMPLES / case, tmp_path / "theirs")
    if case != "two_reservoirs":
        assert sum(ours.pop("costs")) == pytest.approx(sum(theirs.pop("costs")), rel=0.02)
    assert differences(ours, theirs) == []


def test_training_continues_from_peer_policy(tmp_path):
    case = EXAMPLES / "two_reservoirs"
    run_script(peer_python(), ["-I"], TABLES, case, tmp_path / "first")
    for name in ("theirs", "ours"):
        shutil.copytree(tmp_path / "first" / "policy", tmp_path / name / "policy")
    theirs = run_script(peer_python(), ["-I"], WARM_START, case, tmp_path / "theirs")
    assert differences(run_script(sys.executable, [], WARM_START, case, tmp_path / "ours"), theirs) == []


def test_peer_schemas_have_counterparts(tmp_path):
    text = "import sys, cobre.schema; print(cobre.schema.export(sys.argv[1]))"
    for python, flags, name in ((peer_python(), ["-I"], "theirs"), (sys.executable, [], "ours")):
        environ = {**os.environ, "COBRE_COMM_BACKEND": ""}
        subprocess.run([python, *flags, "-c", text, tmp_path / name], check=True, timeout=60, env=environ)
    names = {name: {path.name for path in (tmp_path / name).iterdir()} for name in ("theirs", "ours")}
    assert names["theirs"] == names["ours"]
    for name in sorted(names["ours"]):
        mine, its = (_properties(tmp_path / side / name) for side in ("ours", "theirs"))
        assert mine - {"$schema"} <= its, name


def _properties(path: Path) -> set[str]:
    return set(json.loads(path.read_text())["properties"])
