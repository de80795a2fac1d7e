import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "integration")]


@pytest.fixture(autouse=True)
def no_study_outlives_its_test():
    yield
    if studies := sys.modules.get("studies"):  # where the test has started any
        studies.end_started()
