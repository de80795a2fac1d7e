"""A small case, prepared and trained, for all tests of studies."""

import shutil
from pathlib import Path

import pytest
from example_study import EXAMPLE, overrides

from cobre.comm.backends.local import LocalCommunicator
from cobre.runs.events import no_events
from cobre.study.preparation.on_ranks import ReadyStudy, as_case
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import TrainingRequest
from cobre.study.training.train import train_study


@pytest.fixture
def case_folder(tmp_path):
    """Return a copy of the example that a test may change."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "case", ignore=shutil.ignore_patterns("output")))


@pytest.fixture(scope="session")
def study():
    return prepare(as_case(EXAMPLE, overrides())[0])


@pytest.fixture(scope="session")
def solver(study):
    return make_solver(study, 1)


@pytest.fixture(scope="session")
def ready(study, solver):
    return ReadyStudy(study, solver)


@pytest.fixture
def train(ready):
    """Train the example in this process; options are those of a TrainingRequest."""

    def run(emit=no_events, **options):
        with LocalCommunicator() as comm:
            return train_study(comm, ready, TrainingRequest(**options), emit)

    return run
