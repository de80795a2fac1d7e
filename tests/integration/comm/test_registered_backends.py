"""A backend of another distribution: found by its entry point, chosen by name, launched, tested by the kit.

The backend is the one of docs/how-to/write-a-backend.md, with the files that pip would install.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cobre

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "write-a-backend.md"
CASE = ROOT / "examples" / "two_reservoirs"
LIMIT_S = 100
BROKEN = {
    "broken": "no_such_module:Config",
    "wrong": "folder_backend:FolderCommunicator",
    "renamed": "folder_backend:FolderConfig",
    "shm": "folder_backend:FolderConfig",
}


@pytest.fixture(scope="module")
def installed_package(tmp_path_factory):
    """Return a folder on the path with a package installed as pip does."""
    folder = tmp_path_factory.mktemp("installed")
    program = re.search(r"```python file=folder_backend.py\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    (folder / "folder_backend.py").write_text(program)
    entry = re.search(r"folder = \"(.*?)\"", PAGE.read_text())[1]
    facts = folder / "folder_backend-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: folder-backend\nVersion: 1.0\n")
    entries = {"folder": entry, **BROKEN}
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (facts / "entry_points.txt").write_text(f"[cobre.comm.backends]\n{lines}")
    return folder


def run(installed_package, *arguments, **environ):
    settings = {**os.environ, "PYTHONPATH": str(installed_package), "FOLDER_PARENT": str(installed_package), **environ}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S, env=settings)


def test_kit_selects_registered_backend(installed_package):
    done = run(
        installed_package,
        *("-m", "cobre.comm.testing", "--backend", "folder", "--ranks", "2", "--quick", "--case", "reduce/*"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d\d+ cells in .* 0 failed", done.stdout, re.MULTILINE)


def test_run_command_trains_on_registered_backend(installed_package, tmp_path):
    flags = ("--backend", "folder", "--workers", "2", "--iterations", "3", "--quiet", "--json", "--no-report")
    done = run(installed_package, "-m", "cobre.cli", "run", CASE, "--output", tmp_path / "out", *flags)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == cobre.train(CASE, iterations=3, threads=1).digest


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({"FOLDER_RANK": "0", "FOLDER_SIZE": "2"}, "FOLDER_PATH"),
        ({"FOLDER_PATH": "meet", "FOLDER_RANK": "0", "FOLDER_SIZE": "two"}, "FOLDER_SIZE"),
    ],
)
def test_partially_set_rank_variables_raise(installed_package, tmp_path, environ, variable):
    """It would run the whole study once for each rank."""
    flags = ("--output", tmp_path / "out", "--iterations", "1", "--json")
    done = run(installed_package, "-m", "cobre.cli", "run", CASE, *flags, COBRE_COMM_BACKEND="folder", **environ)
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["kind"], report["backend"], report["variable"]) == ("MissingConfigurationError", "folder", variable)
    assert report["exit_code"] == done.returncode == 2
    assert not (tmp_path / "out").exists()


SELECTED = """
from cobre.comm import BackendError, available_backends, create_communicator
from folder_backend import FolderConfig
print(available_backends()[-5:], create_communicator("folder").backend, FolderConfig.from_env().connect().size)
for name in ("broken", "wrong", "renamed", "nothing"):
    try:
        create_communicator(name)
    except BackendError as error:
        print(type(error).__name__, error)
"""


def test_backend_lookup_errors_name_the_cause(installed_package, tmp_path):
    done = run(installed_package, "-c", SELECTED, FOLDER_PATH=str(tmp_path), FOLDER_RANK="0", FOLDER_SIZE="1")
    first, broken, wrong, renamed, nothing = done.stdout.splitlines()
    assert first == "('local', 'broken', 'folder', 'renamed', 'wrong') folder 1", done.stderr
    assert "no_such_module" in broken and "which folder-backend registers" in broken
    assert wrong.startswith("BackendNotAvailableError") and "must be a subclass of RegisteredConfig" in wrong
    assert renamed.startswith("BackendNotAvailableError") and "whose kind is 'renamed'" in renamed
    assert nothing.startswith("InvalidBackendError") and "broken, folder, renamed, wrong" in nothing
