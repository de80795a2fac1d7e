import shutil
from pathlib import Path

import pytest
from example_study import EXAMPLE, overrides

from cobre.comm.backends.local import LocalCommunicator
from cobre.study.prepare import make_solver, prepare
from cobre.study.ranks import as_case
from cobre.study.training import TrainingOptions, train_study


@pytest.fixture
def case_folder(tmp_path):
    """A case that a test may change."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "case", ignore=shutil.ignore_patterns("output")))


@pytest.fixture(scope="session")
def study():
    return prepare(as_case(EXAMPLE, overrides())[0])


@pytest.fixture(scope="session")
def solver(study):
    return make_solver(study, 1)


@pytest.fixture
def train(study, solver):
    """Train the example in this process, with options."""

    def run(**options):
        with LocalCommunicator() as comm:
            return train_study(comm, comm, study, solver, TrainingOptions(**options))

    return run
