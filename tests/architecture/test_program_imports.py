"""Programs that `make test` does not run (benchmarks, fuzzing, clusters, containers) import names that exist."""

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "docs", "examples", *(f"tests/{name}" for name in ("containers", "fuzz", "mpi", "native")))
FOLDERS += ("tests/browser", "tests/package", "tests/slurm", "tests/torture")
PROGRAMS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imported(path):
    """Return modules and names of `from cobre... import ...` in a file, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "cobre":
            yield from ((node.module, alias.name) for alias in node.names)


def exists(module, name):
    try:
        if hasattr(importlib.import_module(module), name):
            return True
    except ModuleNotFoundError as error:
        return not (error.name or "").startswith("cobre")  # else an optional library, such as mpi4py, is missing
    return find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_exist(path):
    assert not [(module, name) for module, name in imported(path) if not exists(module, name)]


@pytest.mark.parametrize(("program", "root"), [("sanitize.py", "tests/unit"), ("coverage_table.py", "tests")])
def test_test_paths_in_programs_exist(program, root):
    """Check the names of test files and folders in the tuples ..._TESTS of a program."""
    tree = ast.parse((ROOT / "tests" / "native" / program).read_text(encoding="utf-8"))
    tuples = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id.endswith("_TESTS")
    ]
    names = [node.value for found in tuples for node in ast.walk(found) if isinstance(node, ast.Constant)]
    assert names
    assert not [name for name in names if not (ROOT / root / name).exists()]
