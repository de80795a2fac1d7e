"""Cases of a chosen size: they have that size, are accepted by both programs, and have the same bounds in both."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peer import peer_bounds, peer_python

import cobre

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SMALL = ("--hydros", "12", "--stages", "3", "--openings", "4", "--forward-passes", "1", "--iterations", "2")


def generate(folder, *options):
    command = [sys.executable, EXAMPLES / "generate_sized.py", folder, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module", params=["plain", "planes"])
def case(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sized") / request.param
    planes = ("--planes", "9") if request.param == "planes" else ()
    done = generate(folder, *SMALL, *planes)
    assert done.returncode == 0, done.stderr
    return folder


def entries(case, file):
    [rows] = json.loads((case / "system" / f"{file}.json").read_text()).values()
    return rows


def test_case_has_requested_size(case):
    assert (len(entries(case, "hydros")), len(entries(case, "buses")), len(entries(case, "lines"))) == (12, 5, 6)
    stages = json.loads((case / "stages.json").read_text())["stages"]
    assert len(stages) == 3
    assert {(len(stage["blocks"]), stage["num_openings"]) for stage in stages} == {(3, 4)}
    lags = pq.read_table(case / "scenarios" / "inflow_ar_coefficients.parquet")["lag"].to_pylist()
    assert max(lags) == 6


def test_planes_have_requested_number(case):
    path = case / "system" / "fpha_hyperplanes.parquet"
    if case.name == "plain":
        assert not path.exists()
        return
    planes = pq.read_table(path).to_pylist()
    assert len(planes) == 12 * 9
    assert all(plane["gamma_v"] >= 0.0 and plane["gamma_q"] > 0.0 and plane["gamma_s"] <= 0.0 for plane in planes)


def test_sized_case_is_valid_without_warnings(case):
    report = cobre.validate(case)
    assert report, str(report)
    assert not report.warnings, str(report)


def test_first_bounds_are_those_of_the_rust_program(case):
    peer_python()
    [(lower, upper), *_] = peer_bounds([case])[0]
    first = cobre.train(case, iterations=1, threads=1).history[0]
    assert first.lower_bound == pytest.approx(lower, rel=1e-9)
    assert first.upper_bound == pytest.approx(upper, rel=1e-9)


def test_seeds_give_other_systems(tmp_path):
    for seed in ("1", "2"):
        generate(tmp_path / seed, *SMALL, "--seed", seed)
    one, two = ((tmp_path / seed / "system" / "thermals.json").read_text() for seed in ("1", "2"))
    assert one != two


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--hydros", "0"), "--hydros: expected at least 1, got 0"),
        (("--stages", "1"), "--stages: expected at least 2, got 1"),
        (("--blocks", "4"), "--blocks: expected 1, 2 or 3, got 4"),
        (("--planes", "1"), "--planes: expected 0 or at least 2, got 1"),
    ],
)
def test_invalid_sizes_are_refused(tmp_path, options, words):
    done = generate(tmp_path / "case", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "case").exists()
