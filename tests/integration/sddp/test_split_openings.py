"""Openings of large stages are solved in blocks: the same bits on any ranks and threads, and the same optima."""

import json
import shutil
from pathlib import Path

import pytest

import cobre
from cobre.io.case import load_case
from cobre.sddp.problem.problem import Problem
from cobre.sddp.training import passes as training_passes
from cobre.study.preparation.prepare import prepare

LARGE = Path(__file__).resolve().parents[3] / "examples" / "large"
STAGES = 5
ITERATIONS = 3
HOURS = (0.2, 0.5, 0.3)  # shares of a stage's hours: three blocks of load make LPs of more than 100 rows


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("case") / "large"
    shutil.copytree(LARGE, folder, ignore=shutil.ignore_patterns("output"))
    stages = json.loads((folder / "stages.json").read_text())
    del stages["stages"][STAGES:]
    for stage in stages["stages"]:
        hours = stage["blocks"][0]["hours"]
        stage["blocks"] = [{"id": i, "name": f"b{i}", "hours": share * hours} for i, share in enumerate(HOURS)]
    (folder / "stages.json").write_text(json.dumps(stages))
    return folder


def trained(case, passes=1, **how):
    settings = {"training.selection.forward_passes": passes}
    return cobre.train(case, iterations=ITERATIONS, config_overrides=settings, **how)


@pytest.fixture(scope="module")
def alone(case):
    return {passes: trained(case, passes, threads=1).digest for passes in (1, 3)}


def test_the_stages_are_large(case):
    problem = prepare(load_case(case)).problem
    assert all(problem.is_large(stage) for stage in range(STAGES))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("passes", [1, 3])
def test_threads_change_no_bit(case, alone, passes, threads):
    assert trained(case, passes, threads=threads).digest == alone[passes]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_with_threads_change_no_bit(case, alone, ranks, threads):
    assert trained(case, num_workers=ranks, threads=threads, backend="shm").digest == alone[1]


def test_ranks_without_shared_memory_change_no_bit(case, alone, monkeypatch):
    monkeypatch.setenv("COBRE_TCP_RANKS_PER_HOST", "1")
    assert trained(case, 3, num_workers=2, threads=2, backend="tcp").digest == alone[3]
    assert trained(case, 1, num_workers=2, threads=1, backend="tcp").digest == alone[1]  # one rank has no path


@pytest.mark.parametrize(("threads", "passes", "units"), [(1, 1, 8), (3, 1, 8), (2, 40, 4 * 40)])
def test_the_number_of_blocks_depends_on_passes_and_not_on_threads(case, monkeypatch, threads, passes, units):
    solved, solve = [], training_passes.solve_openings

    def noted(context, iteration, plan):
        solved.append((len(plan.chains.start) - 1, len(plan.chains.realisation_index)))
        return solve(context, iteration, plan)

    monkeypatch.setattr(training_passes, "solve_openings", noted)
    settings = {"training.selection.forward_passes": passes}
    cobre.train(case, iterations=1, config_overrides=settings, threads=threads)
    assert solved == [(units, 20 * passes)] * (STAGES - 1)


def test_blocks_change_pivots_and_no_optimum(case, alone, monkeypatch):
    """Two chains from the sampled opening to both ends instead; the first bound has cuts of unique slopes."""
    blocks = trained(case, threads=1)
    monkeypatch.setattr(Problem, "is_large", lambda *_: False)
    chains = trained(case, threads=1)
    assert chains.digest != alone[1]
    for one, other in zip(blocks.history, chains.history, strict=True):
        assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-6)
