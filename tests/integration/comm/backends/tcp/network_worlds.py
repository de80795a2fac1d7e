"""Ranks on separate hosts: rank 0, the coordinator, on host 0, every other rank where the test puts it."""

import pytest
from network_hosts import COORDINATOR, NOT_PERMITTED, is_permitted
from tcp_processes import Rank
from tcp_worlds import SECRET

from cobre.comm import TcpConfig

SIZE = 3
TIMEOUT_S = 2.0
SLACK_S = 15.0  # generous for a busy machine; without our limit the kernel would wait for a quarter of an hour

needs_hosts = pytest.mark.skipif(not is_permitted(), reason=NOT_PERMITTED)


class NetworkWorld:
    """A world on hosts: starts its ranks, and ends them."""

    def __init__(self, network):
        self.network = network
        self._started = []

    def start(self, rank, action, host=None, **options):
        """Start one rank, on the host of its number unless another is named."""
        options = {"coordinator": COORDINATOR, "size": SIZE, "secret": SECRET, "timeout_s": TIMEOUT_S} | options
        prefix = self.network.on(rank if host is None else host)
        started = Rank(action, TcpConfig(rank=rank, **options), prefix)
        self._started.append(started)
        return started

    def start_all(self, action, **options):
        return [self.start(rank, action, **options) for rank in range(options.get("size", SIZE))]

    def run_all(self, action, **options):
        """Start all ranks, and wait until they have met and started work."""
        ranks = self.start_all(action, **options)
        for rank in ranks:
            rank.wait_for("running")
        return ranks

    def check_gather(self, ranks):
        """Let all ranks make the gather of `gather_on_command`, and check the data."""
        ranks[0].send_command()
        assert [rank.wait_for("good")["good"] for rank in ranks] == [True] * len(ranks)

    def end(self):
        for rank in self._started:
            rank.end()


def in_time(event, since, limit_s=TIMEOUT_S):
    """Return whether a rank was informed within its time limit."""
    return event["at"] - since < limit_s + SLACK_S
