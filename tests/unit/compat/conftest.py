"""A trained study, seen through the interface of cobre-python."""

from pathlib import Path

import pytest

import cobre

CASE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"
LIMIT = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 4}], "simulation.selection.num_scenarios": 6}


@pytest.fixture(scope="session")
def case_dir():
    return CASE


@pytest.fixture(scope="session")
def limit():
    """Return the overrides of a short run."""
    return LIMIT


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Return the output directory of a run of four iterations and six scenarios, and the value of `run`."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, cobre.run.run(CASE, folder, threads=1, config_overrides=LIMIT)
