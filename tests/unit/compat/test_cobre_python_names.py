"""cobre-python's names exist, and are loaded on first use."""

import subprocess
import sys

import pytest

import cobre

PEER = (
    "Study", "Policy", "errors", "io", "model", "results", "run", "schema", "version_info", "write_policy_checkpoint",
)  # fmt: skip
HEAVY = ("numpy", "pyarrow", "pydantic", "matplotlib", "IPython", "highspy", "mpi4py")


@pytest.mark.parametrize("name", [*PEER, "changed", "load_case", "save_case", "simulate", "train", "validate"])
def test_public_names_are_listed_and_resolve(name):
    assert name in dir(cobre)
    assert getattr(cobre, name) is not None


def test_compatibility_modules_are_modules():
    assert cobre.run.__name__ == "cobre.run"
    assert cobre.run.run.__module__ == "cobre.run"
    assert cobre.io.load_case.__module__ == "cobre.io"
    assert {"load_case", "validate"} <= set(dir(cobre.io))


def test_unknown_names_raise_attribute_error():
    for module in (cobre, cobre.io):
        with pytest.raises(AttributeError, match="nonsense"):
            module.nonsense  # noqa: B018


def test_heavy_modules_are_loaded_on_first_use():
    program = f"import sys, cobre, cobre.run, cobre.results, cobre.errors, cobre.io, cobre.schema, cobre.notebook\nprint([n for n in {HEAVY} if n in sys.modules])"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_version_info():
    found = cobre.version_info()
    assert found["version"] == cobre.__version__
    assert found["solver"].startswith("HiGHS ")
    assert "shm" in found["comm"]
