"""A real run of a small study, which tests copy and damage."""

import shutil
import subprocess
import sys

import pytest
from report_page import EXAMPLE

from cobre.report.document import write_report


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    output = tmp_path_factory.mktemp("report") / "output"
    command = [sys.executable, "-m", "cobre.cli", "run", EXAMPLE, "--output", output, "--iterations", "12"]
    command += ["--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="session")
def finished_page(finished_run):
    return write_report(finished_run, finished_run.parent / "page.html").read_text()


@pytest.fixture
def run_copy(finished_run, tmp_path):
    return shutil.copytree(finished_run, tmp_path / "copy")


@pytest.fixture
def only_events(finished_run, tmp_path):
    """Return the output of a run killed in training: its log, the last line half written."""
    folder = tmp_path / "killed"
    folder.mkdir()
    lines = (finished_run / "events.jsonl").read_bytes().splitlines(keepends=True)
    until = next(place for place, line in enumerate(lines) if b'"iteration":6,' in line)
    (folder / "events.jsonl").write_bytes(b"".join(lines[:until]) + lines[until][:40])
    return folder
