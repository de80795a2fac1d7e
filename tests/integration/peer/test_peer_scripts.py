"""Scripts for cobre-python run on Cobre unchanged, those for novomodelo with one line changed: the same results."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from peer import novomodelo_python, peer_python
from peer_scripts import ERRORS, POLICIES, STEP_BY_STEP, WHOLE_RUN

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SCRIPTS = {"whole_run": WHOLE_RUN, "step_by_step": STEP_BY_STEP, "errors": ERRORS}
# Degenerate vertices leave a choice: the way to the bounds may differ in late digits, single cuts may differ more.
CLOSE = 1e-6
FREE_OF_CHOICE = {"two_reservoirs"}
CHOSEN = {"costs", "storage", "water", "first_cut"}
TIMEOUT_S = 110


def run_script(python, flags, text, case, folder):
    command = [python, *flags, "-c", text, str(case), str(folder)]
    environ = {**os.environ, "COBRE_COMM_BACKEND": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ours(script, case, folder):
    return run_script(sys.executable, [], SCRIPTS[script], EXAMPLES / case, folder)


def differences(left, right, path=""):
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return [found for key in left for found in differences(left[key], right[key], f"{path}.{key}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return [found for place, pair in pairs for found in differences(*pair, f"{path}[{place}]")]
    if isinstance(left, float) and isinstance(right, float):
        return [] if math.isclose(left, right, rel_tol=CLOSE, abs_tol=1e-6) else [(path, left, right)]
    return [] if left == right else [(path, left, right)]


@pytest.mark.parametrize("case", ["two_reservoirs", "four_regions"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_script_gives_same_results_in_both_programs(tmp_path, script, case):
    """Compare both programs where cobre-python is found; `test_..._on_ours` below run everywhere."""
    python = peer_python()
    folders = [tmp_path / name for name in ("theirs", "ours")]
    for folder in folders:
        folder.mkdir()
    theirs = run_script(python, ["-I"], SCRIPTS[script], EXAMPLES / case, folders[0])
    found = ours(script, case, folders[1])
    if case not in FREE_OF_CHOICE:
        for name in CHOSEN & theirs.keys():
            assert len(found.pop(name)) == len(theirs.pop(name))
    assert differences(found, theirs) == []


def for_novomodelo(text):
    """Convert a script to the names of novomodelo."""
    renamed = re.sub(r"\bcobre\b", "novomodelo", text).replace("CobreError", "NovomodeloError")
    return renamed.replace("novomodelo-python", "cobre-python")


def one_line_changed(text):
    assert text.count("\nimport novomodelo\n") == 1
    return text.replace("\nimport novomodelo\n", "\nimport cobre.novomodelo as novomodelo\n")


@pytest.mark.parametrize("script", [*SCRIPTS, "policies"])
def test_script_for_novomodelo_gives_the_same_with_one_line_changed(tmp_path, script):
    python = novomodelo_python()
    text = for_novomodelo(POLICIES if script == "policies" else SCRIPTS[script])
    folders = [tmp_path / name for name in ("theirs", "ours")]
    for folder in folders:
        folder.mkdir()
    theirs = run_script(python, ["-I"], text, EXAMPLES / "two_reservoirs", folders[0])
    found = run_script(sys.executable, [], one_line_changed(text), EXAMPLES / "two_reservoirs", folders[1])
    assert differences(found, theirs) == []


def test_novomodelo_policy_script_runs_here(tmp_path):
    text = one_line_changed(for_novomodelo(POLICIES))
    found = run_script(sys.executable, [], text, EXAMPLES / "two_reservoirs", tmp_path)
    assert found["is_raised"] and found["retired"] == found["no_scale"] == found["states"] == ["ValueError"]
    assert found["keys"] == ["metadata", "stage_bases", "stage_cuts", "stage_states"]


def test_whole_run_script_runs_here(tmp_path):
    found = ours("whole_run", "two_reservoirs", tmp_path)
    assert found["iterations"] == found["producer"] == found["iterations_in_table"] == 4
    assert found["bounds"] == [row[1:3] for row in found["told"]]
    assert found["last"][:2] == found["bounds"][-1]
    assert found["simulation"] == {"n_scenarios": 3, "completed": 3}
    assert found["rows"]["costs"] == len(found["costs"]) == 3 * 12
    assert found["state"] == [[0, 0, 0], [0, 1, 0]]
    assert max(found["water"]) <= 0


def test_step_by_step_script_runs_here(tmp_path):
    found = ours("step_by_step", "two_reservoirs", tmp_path)
    assert found["iterations"] == [5, 5]
    assert found["bounds"][0] == found["bounds"][2]
    assert found["shapes"] == [[20], [20, 2], "float64"]
    assert found["output"] and found["valid"] and found["same"] and found["reloaded"]
    assert found["end"] == "-inf"
    assert found["summary"] == {"n_scenarios": 2, "completed": 2}


def test_error_script_runs_here(tmp_path):
    found = ours("errors", "two_reservoirs", tmp_path)
    assert found["invalid"] == [["CobreError", ["ValueError"]]] * 3
    assert (found["is_valid"], found["nowhere"]) == (False, False)
    assert found["unknown_setting"] == found["no_policy"] == ["CobreError", ["ValueError"]]
    assert found["no_results"] == found["no_table"] == ["OSError"]
    assert (found["stage"], found["state"], found["callback"]) == (["IndexError"], ["ValueError"], ["KeyError"])
    assert found["threads"] == ["ValueError"]


def test_workers_are_an_extra_argument(tmp_path):
    text = WHOLE_RUN.replace("threads=1", "num_workers=2")
    alone = ours("whole_run", "two_reservoirs", tmp_path / "alone")
    together = run_script(sys.executable, [], text, EXAMPLES / "two_reservoirs", tmp_path / "together")
    assert together == alone
