"""Openings of large stages are solved in blocks, those of the first stage each from its own basis: one digest."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cobre
from cobre.comm import LocalConfig, create_communicator
from cobre.io.case import load_case
from cobre.sddp.problem.problem import Problem
from cobre.sddp.training import passes as training_passes
from cobre.sddp.training.loop import iterate
from cobre.sddp.training.passes import drawn_openings, first_stage_costs, forward_step
from cobre.solver.batches import PathOutputs
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import training_context

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


def test_case_has_large_stages(case):
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
def test_number_of_blocks_depends_on_passes_not_threads(case, monkeypatch, threads, passes, units):
    solved, solve = [], training_passes.solve_openings

    def noted(context, iteration, plan):
        solved.append((len(plan.chains.start) - 1, len(plan.chains.realisation_index)))
        return solve(context, iteration, plan)

    monkeypatch.setattr(training_passes, "solve_openings", noted)
    settings = {"training.selection.forward_passes": passes}
    cobre.train(case, iterations=1, config_overrides=settings, threads=threads)
    assert solved == [(units, 20 * passes)] * (STAGES - 1)


def test_blocks_change_pivots_but_no_optimum(case, alone, monkeypatch):
    """Two chains from the sampled opening to both ends instead; the first bound has cuts of unique slopes."""
    blocks = trained(case, threads=1)
    monkeypatch.setattr(Problem, "is_large", lambda *_: False)
    chains = trained(case, threads=1)
    assert chains.digest != alone[1]
    for one, other in zip(blocks.history, chains.history, strict=True):
        assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-6)


# The lower bound: from the second iteration on each opening starts from its own optimum of the iteration before.


SELECTED = {"training.cut_selection.selection": {"method": "level1", "check_frequency": 1}}


def test_bound_is_solved_again_without_a_pivot(case):
    study = prepare(load_case(case))
    with create_communicator(LocalConfig()) as comm:
        context = training_context(comm, study, make_solver(study, 1), 2)
        iterate(context, 1, None)
        bound, bases = first_stage_costs(context, 2), context.state.first_stage_bases
        context.meter.restart()
        assert first_stage_costs(context, 3) == pytest.approx(bound, rel=1e-12)
        assert context.meter.solves.total.solves == bound.size
        assert context.meter.solves.total.pivots == 0
        step = forward_step(context, 2, 0)  # the forward pass: the same LPs as long as no cut is inactive
        opening = drawn_openings(study.problem, step)
        start = np.tile(study.problem.initial_state, (2, 1))
        solved = context.solver.solve_paths([step], start, PathOutputs())
        assert solved.pivots == 0
        assert solved.objective[0] == pytest.approx(bound[0, opening], rel=1e-12)
        context.state.restore(replace(context.state.mark(), first_stage_bases=bases))
        assert context.state.first_stage_bases is bases
        context.pool.close()


@pytest.mark.parametrize("selected", [{}, SELECTED], ids=["all cuts", "level 1"])
def test_resumed_run_continues_with_the_bases_of_the_bound(case, tmp_path, selected):
    settings = {"training.selection.forward_passes": 2, **selected}
    whole = cobre.train(case, threads=1, iterations=4, config_overrides=settings)
    kept = {"config_overrides": settings, "checkpoints": tmp_path / "kept", "checkpoint_every": 1}
    cobre.train(case, threads=1, iterations=2, **kept)
    more = cobre.train(case, num_workers=2, threads=1, backend="shm", iterations=3, resume=True, **kept)
    assert [record.iteration for record in more.history] == [1, 2, 3]
    assert cobre.train(case, threads=2, iterations=4, resume=True, **kept).digest == whole.digest
    assert [record.simplex_iterations for record in whole.history[:3]] == [
        record.simplex_iterations for record in more.history
    ]


def test_hosts_gather_the_bases_of_the_bound(case, alone, monkeypatch, tmp_path):
    monkeypatch.setenv("COBRE_TCP_RANKS_PER_HOST", "1")
    how = {"num_workers": 3, "threads": 1, "backend": "tcp"}
    kept = {"checkpoints": tmp_path / "kept", "checkpoint_every": 1}
    settings = {"training.selection.forward_passes": 3}
    stopped = cobre.train(case, iterations=2, config_overrides=settings, **how, **kept)
    assert stopped.history[1].traffic_bytes["bases of the lower bound"] > 0
    assert trained(case, 3, threads=1, resume=True, **kept).digest == alone[3]
