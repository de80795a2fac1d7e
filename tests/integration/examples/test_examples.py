"""The example cases: written by their generator, accepted by the reader, and solved alike by the Rust program."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peer import peer_bounds, peer_python

import cobre

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = ("two_reservoirs", "four_regions", "large")


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    subprocess.run([sys.executable, EXAMPLES / "generate.py", folder], check=True, capture_output=True, timeout=60)
    return folder


def data_files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".json", ".parquet"))


@pytest.mark.parametrize("name", NAMES)
def test_generator_reproduces_committed_files(regenerated, name):
    kept, made = EXAMPLES / name, regenerated / name
    assert data_files(made) == data_files(kept)
    for file in data_files(kept):
        if file.suffix == ".json":
            assert (made / file).read_text() == (kept / file).read_text(), file
        else:  # the bytes name the library that wrote them
            assert pq.read_table(made / file).equals(pq.read_table(kept / file)), file


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_readable_by_the_rust_program(name):
    """The Rust program reads two compressions; files are small enough to keep in the repository."""
    for file in data_files(EXAMPLES / name):
        if file.suffix == ".parquet":
            metadata = pq.read_metadata(EXAMPLES / name / file)
            assert metadata.row_group(0).column(0).compression == "ZSTD"
        assert (EXAMPLES / name / file).stat().st_size < 100_000


@pytest.mark.parametrize("name", NAMES)
def test_example_is_valid_without_a_warning(name):
    report = cobre.validate(EXAMPLES / name)
    assert report, str(report)
    assert not report.warnings, str(report)


@pytest.mark.parametrize("name", NAMES)
def test_readme_of_an_example_has_its_command_and_iterations(name):
    readme = (EXAMPLES / name / "README.md").read_text()
    iterations = json.loads((EXAMPLES / name / "config.json").read_text())["training"]["stopping_rules"][0]["limit"]
    assert f"cobre run examples/{name}" in readme
    assert f"{iterations} iterations" in readme


def count(name, file):
    [rows] = json.loads((EXAMPLES / name / "system" / f"{file}.json").read_text()).values()
    return len(rows)


def test_large_case_has_its_documented_size():
    assert count("large", "hydros") >= 30
    assert count("large", "thermals") >= 60
    assert count("large", "buses") == 5
    stages = json.loads((EXAMPLES / "large" / "stages.json").read_text())["stages"]
    assert (len(stages), stages[0]["num_openings"]) == (24, 20)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_first_bounds_are_those_of_the_rust_program(tmp_path, name):
    """Later bounds differ: degenerate vertices leave each program a choice of cuts."""
    peer_python()
    [(lower, upper), *_] = peer_bounds([copy_with_iterations(EXAMPLES / name, tmp_path / name, 2)])[0]
    first = cobre.train(EXAMPLES / name, iterations=1, threads=1).history[0]
    assert first.lower_bound == pytest.approx(lower, rel=1e-9)
    assert first.upper_bound == pytest.approx(upper, rel=1e-9)


def copy_with_iterations(case, target, iterations):
    for file in data_files(case):
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (target / file).write_bytes((case / file).read_bytes())
    config = json.loads((case / "config.json").read_text())
    config["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": iterations}]
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_two_reservoirs_converges():
    """The last iterations hardly raise the bound."""
    history = cobre.train(EXAMPLES / "two_reservoirs", threads=2).history
    assert history[-1].lower_bound == pytest.approx(history[-15].lower_bound, rel=1e-3)
