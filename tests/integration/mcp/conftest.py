"""A server with its folder, and read-only runs, one of each per test module."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

CASE = Path(__file__).parents[3] / "examples" / "two_reservoirs"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with studies for the server, and a private folder next to them that it must not read."""
    place = tmp_path_factory.mktemp("mcp")
    shutil.copytree(CASE, place / "studies" / "case", ignore=shutil.ignore_patterns("output"))
    (place / "private").mkdir()
    (place / "private" / "summary.json").write_text('{"secret": 1}')
    return place


@pytest.fixture(scope="module")
def studies(place):
    return place / "studies"


@pytest.fixture(scope="module")
def server(studies):
    from assistant import assistant  # needs the protocol's library: files of tests are skipped without it

    with assistant(studies) as server:
        yield server


@pytest.fixture(scope="module")
def run(server, studies):
    """Return the output directory of a run by two workers."""
    job = server.start_study(case="case", output="run", iterations=4, workers=2)["job"]
    assert server.finished(job)["state"] == "finished"
    return studies / "run"


@pytest.fixture(scope="module")
def longer(server, studies):
    """Return the job of a run by one process, with one more iteration."""
    started = server.start("longer", iterations=5)
    assert started["state"] == "starting"
    assert started["job"] == str(studies / "longer")
    assert server.finished("longer")["state"] == "finished"
    assert not (studies / "longer" / "report.html").exists()
    return started["job"]
