"""A study of many LPs estimates its duration in the first iteration."""

from pathlib import Path

from cobre.comm.backends.local import LocalCommunicator
from cobre.core.case import changed
from cobre.core.stopping import IterationLimit
from cobre.sddp.training.loop import Interruption
from cobre.study.preparation.on_ranks import ReadyStudy, as_case
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import TrainingRequest
from cobre.study.training.iteration_progress import FIRST_ESTIMATE_S, LONG_STUDY_SOLVES, PILOT_SOLVES, DurationEstimator
from cobre.study.training.stop_request import StopRequest
from cobre.study.training.train import train_study

LARGE = Path(__file__).resolve().parents[3] / "examples" / "large"


def _trained(iterations, stop_after):
    """Train a study of `iterations` that is stopped after a few; return its events and its digest."""
    case = changed(as_case(LARGE, None)[0], {"config.training.stopping_rules": (IterationLimit(iterations),)})
    study = prepare(case)
    stop, events = StopRequest(None), []

    def emit(event):
        events.append(event)
        if event["event"] == "iteration" and event["iteration"] == stop_after:
            stop.request_stop(Interruption.REQUESTED)

    with LocalCommunicator() as comm:
        ready = ReadyStudy(study, make_solver(study, 1))
        trained = train_study(comm, ready, TrainingRequest(), emit, stop)
    return events, trained


def test_short_study_has_no_estimate():
    events, _ = _trained(2, 2)
    assert [event for event in events if event["event"] == "estimate"] == []


def test_long_study_estimates_its_duration_early_without_changing_bits():
    events, trained = _trained(5000, 2)
    problem = trained.study.problem
    passes = trained.study.case.config.training.forward_passes
    assert 5000 * passes * sum(1 + found.count for found in problem.openings) > LONG_STUDY_SOLVES
    kinds = [event["event"] for event in events]
    assert kinds.count("estimate") in (1, 2)  # two if the forward pass takes more than ten seconds
    assert "estimate" not in kinds[kinds.index("iteration") :]
    *_, estimate = [event for event in events if event["event"] == "estimate"]
    assert (estimate["iterations"], estimate["forward_passes"], estimate["cores"]) == (5000, passes, 1)
    assert estimate["cut_bytes"] == 8 * 5000 * passes * (problem.num_stages - 1) * (1 + problem.dimension)
    assert estimate["seconds"] > 0
    short = _trained(2, 2)[1]
    assert [record.lower_bound for record in trained.history[:2]] == [record.lower_bound for record in short.history]


def test_long_forward_pass_gives_an_estimate_before_the_backward_pass():
    estimator = DurationEstimator(total=1000, forward=500, cores=2, iterations=50, forward_passes=4, cut_bytes=8)
    assert estimator.estimate(FIRST_ESTIMATE_S, PILOT_SOLVES - 1) is None
    assert estimator.estimate(FIRST_ESTIMATE_S - 1.0, 100) is None
    assert estimator.estimate(20.0, 100)["seconds"] == 50 * 1000 * 0.2
    assert estimator.estimate(30.0, 150) is None
    assert estimator.estimate(60.0, 500) is None
    assert estimator.estimate(70.0, 600)["seconds"] == 50 * 1000 * 0.1
    assert estimator.estimate(80.0, 700) is None


def test_backward_estimate_counts_only_its_lps():
    estimator = DurationEstimator(total=1000, forward=100, cores=2, iterations=50, forward_passes=4, cut_bytes=8)
    assert estimator.estimate(5.0, 99) is None
    assert estimator.estimate(10.0, 110) is None
    assert estimator.estimate(11.0, 109 + PILOT_SOLVES) is None
    assert estimator.estimate(12.0, 110 + PILOT_SOLVES)["seconds"] == 50 * 1000 * 2.0 / PILOT_SOLVES
