"""The log of runs that were started more than once, and what it says of ranks."""

import json

import pytest

from cobre.report.rank_loads import loads_of
from cobre.runs.event_history import read_history


def log_of(tmp_path, *events):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps({"time": 1.0, **event}) + "\n" for event in events))
    return read_history(path)


def iteration(number, bound=0.0, load=None):
    return {"event": "iteration", "iteration": number, "lower_bound": bound, "load": load or []}


def test_a_resumed_run_keeps_what_came_before_its_checkpoint(tmp_path):
    first = [iteration(number, bound=1.0) for number in range(1, 9)]
    again = [iteration(number, bound=2.0) for number in (6, 7)]
    log = log_of(tmp_path, {"event": "run_started"}, *first, {"event": "run_started", "is_resumed": True}, *again)
    assert [event["iteration"] for event in log.iterations] == [1, 2, 3, 4, 5, 6, 7]
    assert [event["lower_bound"] for event in log.iterations] == [1.0] * 5 + [2.0] * 2
    assert len(log.of("iteration")) == 2


def test_a_run_that_starts_anew_forgets(tmp_path):
    log = log_of(tmp_path, {"event": "run_started"}, iteration(1), iteration(2), {"event": "run_started"}, iteration(1))
    assert [event["iteration"] for event in log.iterations] == [1]


def test_stragglers_are_found(tmp_path):
    loads = [[[1.0, 1.0], [1.1, 0.9], [2.0, 0.0], [0.9, 1.1]]] * 3
    workers = [{"rank": rank, "host": f"node{rank}"} for rank in range(4)]
    log = log_of(
        tmp_path,
        *(iteration(place, load=load) for place, load in enumerate(loads, 1)),
        {"event": "training_finished", "workers": workers},
    )
    found = loads_of(log)
    assert found.stragglers() == {2: pytest.approx(6.0 / 3.15 - 1)}
    assert found.times_slowest.tolist() == [0, 0, 3, 0]
    assert found.hosts == ["node0", "node1", "node2", "node3"]
    assert found.waiting_share.tolist() == pytest.approx([0.5, 0.45, 0.0, 0.55])


def test_a_single_rank_never_straggles(tmp_path):
    assert loads_of(log_of(tmp_path, iteration(1, load=[[5.0, 0.0]]))).stragglers() == {}


@pytest.mark.parametrize("load", ["words", [["a", "b"]], [[1.0]], [[1.0, 2.0], [3.0]], None])
def test_loads_that_make_no_sense_are_none(tmp_path, load):
    assert loads_of(log_of(tmp_path, {"event": "iteration", "iteration": 1, "load": load})) is None
