import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# Small systems and plain inflow models, which unit tests solve too.
sys.path += [str(Path(__file__).parents[1] / "unit" / part) for part in ("sddp", "stochastic")]

from network_hosts import Network
from network_worlds import NetworkWorld


def world_on(network):
    world = NetworkWorld(network)
    try:
        yield world
    finally:
        world.end()


@pytest.fixture
def world():
    """A world whose ranks run on hosts of their own."""
    with Network() as network:
        yield from world_on(network)


@pytest.fixture
def world_of_v6():
    """The same, on hosts without an IPv4 address."""
    with Network(families=(6,)) as network:
        yield from world_on(network)


@pytest.fixture(autouse=True)
def no_study_outlives_its_test():
    yield
    if studies := sys.modules.get("studies"):  # where the test has started any
        studies.end_started()
