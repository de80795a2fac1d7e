"""Two runs whose cases differ, and their comparison."""

import pytest
from compared_studies import EXAMPLE, run, with_one_plant_more

from cobre.comparison.result import compare


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    return run(EXAMPLE, folder / "a"), run(with_one_plant_more(folder / "case"), folder / "b")


@pytest.fixture(scope="session")
def comparison(runs):
    return compare(*runs)
