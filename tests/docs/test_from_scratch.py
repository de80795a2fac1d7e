"""The program of the page "SDDP from scratch" gives the bits of `cobre run`: bounds, mean costs, and every cut."""

import importlib
import json
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from snippets import ROOT

import cobre

FOLDER, CASE = ROOT / "examples" / "from_scratch", ROOT / "examples" / "two_reservoirs"
ITERATIONS = 12
CVAR = {"cvar": {"alpha": 0.25, "lambda": 0.4}}


@pytest.fixture
def from_scratch(monkeypatch):
    """Yield the module as its script would import it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("sddp")
    for name in ("sddp", "stage_lp"):
        sys.modules.pop(name, None)


@pytest.fixture
def risk_averse(tmp_path):
    folder = tmp_path / "risk_averse"
    shutil.copytree(CASE, folder)
    document = json.loads((folder / "stages.json").read_text())
    for stage in document["stages"]:
        stage["risk_measure"] = CVAR
    (folder / "stages.json").write_text(json.dumps(document))
    return folder


def run(case, output):
    command = [sys.executable, "-m", "cobre.cli", "run", case, "--output", output, "--iterations", str(ITERATIONS)]
    subprocess.run([*command, "--no-simulation", "--quiet", "--threads", "2"], check=True)
    table = pq.read_table(output / "training" / "convergence.parquet")
    return table["lower_bound"].to_pylist(), table["upper_bound"].to_pylist()


@pytest.mark.parametrize("is_averse", [False, True], ids=["expectation", "cvar"])
def test_bounds_and_cuts_have_the_bits_of_a_run(from_scratch, risk_averse, tmp_path, is_averse):
    case = risk_averse if is_averse else CASE
    method = from_scratch.Sddp(case)
    mine = [method.iterate(number) for number in range(1, ITERATIONS + 1)]
    assert [*zip(*mine, strict=True)] == [tuple(column) for column in run(case, tmp_path / "run")]
    policy = cobre.train(case, iterations=ITERATIONS, threads=1).policy
    for stage, cuts in enumerate(method.cuts[:-1]):
        intercepts, coefficients = policy.cut_matrix(stage)
        assert cuts[:, 0].tolist() == intercepts.tolist()
        assert cuts[:, 1:].tolist() == coefficients.tolist()
    assert len(method.cuts[0]) == ITERATIONS * method.passes


def test_script_prints_its_bounds():
    command = [sys.executable, FOLDER / "sddp.py", CASE, "--iterations", "2"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(shown) == 2
    assert "25372665.35" in shown[0]


def test_method_stays_short():
    """Keep the method short: the page promises one that fits on a few screens."""
    assert len((FOLDER / "sddp.py").read_text().splitlines()) <= 130
