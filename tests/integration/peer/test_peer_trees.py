"""The same trees through cobre-python: bounds of the first and last iteration, and costs of simulated paths."""

import pytest
from crafted_case import write_crafted
from peer import peer_python, peer_tables
from tree_cases import TREES

import cobre


@pytest.fixture(autouse=True)
def _peer():
    peer_python()


def test_tree_bounds_and_path_costs_match_peer(tmp_path):
    folders = [write_crafted(tmp_path / str(number), case) for number, case in enumerate(TREES.values())]
    for name, folder, theirs in zip(TREES, folders, peer_tables(folders, {}), strict=True):
        trained = cobre.train(folder, threads=1)
        ours = trained.history
        assert ours[0].lower_bound == pytest.approx(theirs["bounds"][0][0], rel=1e-9), name
        assert trained.lower_bound == pytest.approx(theirs["bounds"][-1][0], rel=1e-6), name
        assert trained.upper_bound == pytest.approx(theirs["bounds"][-1][1], rel=1e-6), name
        if "averse" in name:
            continue  # decisions that the measure is indifferent to may cost another mean
        simulated = cobre.simulate(folder, trained.policy, threads=1)
        summary = theirs["summary"]
        costs = zip(summary["probability"], summary["discounted_immediate_cost"], strict=True)
        assert simulated.mean_cost == pytest.approx(sum(share * cost for share, cost in costs), rel=1e-6), name
