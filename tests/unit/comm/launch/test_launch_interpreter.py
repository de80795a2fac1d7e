"""Flags and import path of the interpreters that ranks run in."""

import os
import site
import subprocess
import sys
from pathlib import Path

import cobre
from cobre.comm.launch.spawning import interpreter_flags, with_import_path

ROOT = str(Path(cobre.__file__).parent.parent)
SHOW_FLAGS = "from cobre.comm.launch.spawning import interpreter_flags; print(*interpreter_flags())"


def flags_of(*options):
    command = [sys.executable, *options, "-c", SHOW_FLAGS]
    # Variables such as PYTHONDONTWRITEBYTECODE set flags too.
    environment = {name: value for name, value in os.environ.items() if name == "PYTHONPATH" or "PYTHON" not in name}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    return ran.stdout.split()


def test_flags_of_this_interpreter_are_repeated():
    assert flags_of("-O", "-O", "-B") == ["-O", "-O", "-B"]
    assert flags_of("-W", "ignore::DeprecationWarning") == ["-Wignore::DeprecationWarning"]
    flags = flags_of("-X", "utf8", "-X", "tracemalloc=2")
    assert flags == ["-X", "utf8", "-X", "tracemalloc=2"]


def test_interpreter_accepts_the_flags():
    flags = interpreter_flags()
    again = subprocess.run([sys.executable, *flags, "-c", ""], timeout=60, check=False)
    assert again.returncode == 0


def test_package_found_through_sys_path_only_is_added_to_pythonpath(monkeypatch):
    monkeypatch.setattr(site, "getsitepackages", lambda: ["/nowhere"])
    monkeypatch.setattr(sys, "path", [ROOT, *sys.path])
    assert with_import_path({"A": "1"}) == {"A": "1", "PYTHONPATH": ROOT}
    assert with_import_path({"PYTHONPATH": "/other"})["PYTHONPATH"] == os.pathsep.join([ROOT, "/other"])


def test_installed_package_changes_nothing(monkeypatch):
    monkeypatch.setattr(site, "getsitepackages", lambda: [ROOT])
    monkeypatch.setattr(sys, "path", [ROOT])
    assert with_import_path({}) == {}


def test_path_in_pythonpath_is_not_repeated(monkeypatch):
    monkeypatch.setattr(sys, "path", [ROOT])
    assert with_import_path({"PYTHONPATH": ROOT}) == {"PYTHONPATH": ROOT}


def test_package_behind_an_import_hook_changes_nothing(monkeypatch):
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != ROOT])
    assert with_import_path({}) == {}
