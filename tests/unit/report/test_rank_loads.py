"""Balance of work between ranks, from the events of the run."""

import pytest

from cobre.report.sections.convergence import loads_of
from cobre.runs.events import new_event
from cobre.runs.view import view_of


def iteration(number, load):
    numbers = {"lower_bound": 1.0, "upper_bound": 1.0, "half_width": 0.0, "gap": 0.0, "cuts": 1}
    return new_event("iteration", iteration=number, load=load, **numbers)


def test_slowest_rank_is_reported():
    loads = [[[1.0, 1.0], [1.1, 0.9], [2.0, 0.0], [0.9, 1.1]]] * 3
    workers = [{"rank": rank, "host": f"node{rank}"} for rank in range(4)]
    iterations = [iteration(number, load) for number, load in enumerate(loads, 1)]
    found = loads_of(view_of([*iterations, new_event("training_finished", workers=workers)]))
    assert found.stragglers() == {2: pytest.approx(6.0 / 3.15 - 1)}
    assert found.times_slowest.tolist() == [0, 0, 3, 0]
    assert found.hosts == ["node0", "node1", "node2", "node3"]
    assert found.waiting_share.tolist() == pytest.approx([0.5, 0.45, 0.0, 0.55])


def test_single_rank_is_never_reported_as_slow():
    assert loads_of(view_of([iteration(1, [[5.0, 0.0]])])).stragglers() == {}


@pytest.mark.parametrize("load", ["words", [["a", "b"]], [[1.0]], [[1.0, 2.0], [3.0]], None, []])
def test_invalid_loads_are_ignored(load):
    assert loads_of(view_of([iteration(1, load)])) is None
