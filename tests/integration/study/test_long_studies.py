"""A study of many LPs says before it begins how long it will take."""

from pathlib import Path

from cobre.comm.backends.local import LocalCommunicator
from cobre.study.inspection.bench import LONG_STUDY_SOLVES, pilot_estimate
from cobre.study.preparation.prepare import make_solver, prepare
from cobre.study.preparation.ready_study import ReadyStudy, as_case
from cobre.study.requests import TrainingRequest, with_iterations
from cobre.study.training.train_study import train_study

LARGE = Path(__file__).resolve().parents[3] / "examples" / "large"


def _ready(iterations):
    study = prepare(as_case(LARGE, with_iterations(None, iterations))[0])
    return ReadyStudy.of(study, make_solver(study, 1))


def test_a_short_study_has_no_estimate():
    assert pilot_estimate(_ready(2), 1) is None


def test_an_estimate_scales_with_iterations_and_cores_and_changes_no_bit():
    ready = _ready(5000)
    passes = ready.study.case.config.training.forward_passes
    assert 5000 * passes * sum(1 + found.count for found in ready.study.problem.openings) > LONG_STUDY_SOLVES
    alone, many = pilot_estimate(ready, 1), pilot_estimate(ready, passes)
    assert alone["seconds"] > 0
    assert (alone["iterations"], alone["forward_passes"], many["cores"]) == (5000, passes, passes)
    stages, dimension = ready.study.problem.num_stages, ready.study.problem.dimension
    assert alone["cut_bytes"] == 8 * 5000 * passes * (stages - 1) * (1 + dimension)
    before, after = _ready(2), _ready(2)
    pilot_estimate(_with_limit(after), 1)
    with LocalCommunicator() as comm:
        digests = {train_study(comm, one, TrainingRequest()).digest for one in (before, after)}
    assert len(digests) == 1


def _with_limit(ready):
    """The solver of a short study, asked for a long one."""
    return ReadyStudy(_ready(5000).study, ready.solver, ready.fingerprint)
