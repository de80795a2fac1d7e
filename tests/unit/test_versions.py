"""The compiled part of Cobre, built from other sources than the Python files: a clear error."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import cobre
from cobre import _native
from cobre.versions import explain_import_error

SOURCES = Path(cobre.__file__).parent
TRAIN = "import cobre; cobre.train('nowhere')"
VALIDATE = "from cobre.cli.main import main; main(['validate', '.'])"


@pytest.fixture
def clone(tmp_path):
    """Return the package in a directory of its own, whose Python files ask for a name that native code lacks."""
    package = tmp_path / "cobre"
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__", "report", "mcp"))
    shutil.copy(_native.__file__, package)
    with (package / "_native.pyi").open("a") as stream:
        stream.write("\ndef lately_added() -> None: ...\n")
    module = package / "solver" / "program.py"
    module.write_text("from cobre._native import lately_added\n\n" + module.read_text())
    return tmp_path


def run(folder, program):
    """Run a program without the installed package: only its libraries are on the path."""
    path = os.pathsep.join([str(folder), sysconfig.get_path("platlib")])
    command = [sys.executable, "-S", "-c", program]
    environment = {**os.environ, "PYTHONPATH": path, "COBRE_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("program", [TRAIN, VALIDATE])
def test_old_build_is_named_with_its_remedy(clone, program):
    done = run(clone, program)
    assert done.returncode == 1
    assert (
        "(cobre._native) was built from other sources than the Python files next to it: build it again" in done.stderr
    )
    assert "Traceback" not in done.stderr or program == TRAIN


def test_missing_build_is_named_with_its_remedy(clone):
    for file in (clone / "cobre").glob("_native.*.so"):
        file.unlink()
    done = run(clone, VALIDATE)
    assert done.returncode == 1
    assert done.stderr == (
        "cobre: the compiled part of Cobre (cobre._native) is missing or cannot be loaded: "
        "build it again: `make demo` in a clone, otherwise `pip install .`\n"
    )


def test_current_build_explains_no_error():
    assert explain_import_error(AttributeError("module has no attribute")) is None
