"""Worlds whose ranks run on separate hosts."""

import pytest
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
    """Yield a world whose ranks run on separate hosts."""
    with Network() as network:
        yield from world_on(network)


@pytest.fixture
def world_apart():
    """Yield a world on hosts that reach only the coordinator's host."""
    with Network(forwards=False) as network:
        yield from world_on(network)


@pytest.fixture
def world_of_v6():
    """Yield a world on hosts without an IPv4 address."""
    with Network(families=(6,)) as network:
        yield from world_on(network)
