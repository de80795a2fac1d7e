"""The image, and a user's folder for each test; `make containers` checks first that both are possible."""

import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "deploy")]

from compose_project import leftovers  # noqa: E402 - in this folder
from manifests import TWO_RESERVOIRS  # noqa: E402
from podman import podman  # noqa: E402
from prepare import IMAGE  # noqa: E402


@pytest.fixture(scope="session")
def image():
    assert podman("image", "exists", IMAGE, check=False).returncode == 0, "`make containers` builds the image"
    before = leftovers()
    yield IMAGE
    assert leftovers() == before


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a case and an empty output."""
    shutil.copytree(TWO_RESERVOIRS, tmp_path / "case", ignore=shutil.ignore_patterns("output"))
    (tmp_path / "output").mkdir()
    return tmp_path
