"""Ranks exchange only the data that the method needs."""

import pytest
from solving import train_folder
from systems_water import random_inflows

from cobre.comm import launch
from cobre.io.case import load_case
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import train_study

PASSES, STAGES, STATES, ITERATIONS, OPENINGS = 2, 3, 2, 2, 4
LIMIT = {"training.stopping_rules": [{"type": "iteration_limit", "limit": ITERATIONS}]}
LIMIT |= {"training.selection": {"method": "sampled", "forward_passes": PASSES}}
LML1 = {"training.cut_selection": {"selection": {"method": "lml1", "check_frequency": 1}}}
RECENT = {"training.cut_selection": {"selection": {"method": "dynamic", "candidate_recency": 1}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return random_inflows().write(tmp_path_factory.mktemp("random"))


def traffic_on_a_rank(comm, folder, overrides):
    study = prepare(load_case(folder, LIMIT | overrides))
    history = train_study(comm, ReadyStudy(study, make_solver(study, 1))).history
    return [dict(record.traffic_bytes) for record in history]


@pytest.mark.parametrize(("overrides", "reads_states"), [({}, False), (RECENT, False), (LML1, True)])
def test_states_are_exchanged_only_if_selection_reads_them(folder, overrides, reads_states):
    one, other = launch.run(traffic_on_a_rank, 2, args=(folder, overrides))
    assert one == other
    assert len(one) == ITERATIONS
    for told in one:
        assert told["path costs"] == 8 * PASSES
        assert told["cuts"] == 8 * PASSES * (STAGES - 1) * (1 + STATES)
        assert told.get("trial states") == (8 * PASSES * (STAGES - 1) * STATES if reads_states else None)
        assert told["bases"] > 0


def test_single_rank_sends_nothing(folder):
    assert [dict(record.traffic_bytes) for record in train_folder(folder, LIMIT).history] == [{}] * ITERATIONS
