"""The tree of tests mirrors the source: folders of unit and integration tests have the names of packages."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Tests of the program as a whole: against oracles of our own, cobre-python, published results; and the examples.
WHOLE_PROGRAM = {"oracles", "peer", "published", "examples"}


def folders_with_tests(tests):
    return sorted({path.parent.relative_to(tests) for path in tests.rglob("test_*.py")} - {Path()})


@pytest.mark.parametrize("kind", ["unit", "integration"])
def test_test_folders_match_packages(kind):
    folders = folders_with_tests(ROOT / "tests" / kind)
    assert folders
    lost = [folder for folder in folders if not (ROOT / "src" / "cobre" / folder / "__init__.py").exists()]
    assert {str(folder) for folder in lost} <= (WHOLE_PROGRAM if kind == "integration" else set())


def test_names_of_test_modules_are_unique():
    """Test folders are not packages, so two modules of the same name would hide each other."""
    tests = ROOT / "tests"
    names = [path.name for folder in ("unit", "integration", "support") for path in (tests / folder).rglob("*.py")]
    assert not {name for name in names if names.count(name) > 1} - {"conftest.py"}
