"""Tests of failed LPs, which are saved with all their inputs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from contexts import context_of, iterated
from small_cases import SmallCase, hydro, thermal

from cobre.sddp.iteration_records import Phase
from cobre.sddp.lp.failure import EntityNames, FailedSolve, StageFailedError, StartingBasis
from cobre.sddp.simulation.policy_simulation import PolicySimulator
from cobre.sddp.training.loop import iterate
from cobre.solver.batches import Chains, Outputs, Realisations, no_bases


def context_with(tmp_path, method):
    """Return the context of a plant that must keep 50 hm3, after one iteration."""
    case = SmallCase(
        hydros=[hydro(0, storage=(50.0, 100.0))],
        thermals=[thermal(0, 10.0, 90.0)],
        stages=2,
        openings=2,
        forward_passes=2,
        load={0: 60.0},
        inflow={0: (10.0, 1.0)},
        storage={0: 60.0},
        method=method,
    )
    context = context_of(case.write(tmp_path))
    context = replace(context, failure_folder=tmp_path / "failures")
    iterated(context, 1)
    return context


@pytest.fixture
def context(tmp_path):
    return context_with(tmp_path, "none")


def fail(context, basis_index):
    """Solve a stage from a trial point without water, so that 50 hm3 cannot be reached; return what was saved."""
    states = np.array([[60.0], [0.0]])
    items = np.array([0, 1, 0, 1], np.int32)
    noise, index = context.problem.openings[1].realisations, np.array(basis_index, np.int32)
    chains = Chains(states, np.array([0, 2, 4], np.int32), noise, items, context.state.bases[1], index)
    with pytest.raises(StageFailedError, match="Too little water: H0") as raised:
        context.solve(Phase.BACKWARD, 1, 1, chains, Outputs())
    saved = raised.value.saved
    return json.loads(saved.with_suffix(".json").read_text()), saved


def test_state_noise_and_basis_are_saved(context):
    content, saved = fail(context, [0, 0])
    program = context.problem.stages[1].program
    assert saved.exists()
    assert content["state"] == [0.0]
    realised = context.problem.openings[1].realisations
    assert content["inflow_m3s"] == realised.inflow_m3s[0].tolist()
    assert content["load_mw"] == realised.load_mw[0].tolist()
    basis = content["basis"]
    assert list(basis["columns"]) == list(program.names.columns)
    assert list(basis["rows"]) == list(program.names.rows)
    words = [*basis["columns"].values(), *basis["rows"].values()]
    assert words.count("basic") == len(program.names.rows)
    assert basis["solved_before"] == 0
    assert basis["tight_cuts"] == []


def test_saved_basis_is_null_without_a_starting_basis(context):
    basis = fail(context, [0, -1])[0]["basis"]
    assert basis["columns"] is None
    assert basis["rows"] is None


def test_tight_cuts_are_listed_by_slot(context):
    for iteration in (2, 3):
        iterate(context, iteration, None)
    states = np.array([[-5.0]])
    noise = context.problem.openings[0].realisations
    chains = Chains.single(states, noise, np.array([0], np.int32), context.state.bases[0])
    with pytest.raises(StageFailedError) as raised:
        context.solve(Phase.FORWARD, 1, 0, chains, Outputs())
    content = json.loads(raised.value.saved.with_suffix(".json").read_text())
    expected = [slot for slot in context.state.bases[0].cuts[0].tolist() if slot >= 0]
    assert content["basis"]["tight_cuts"] == expected != []


def test_saved_inflow_is_truncated(tmp_path):
    context = context_with(tmp_path, "truncation")
    noise = context.problem.openings[1].realisations.take(np.zeros(1, np.int32))
    negative = Realisations(np.full_like(noise.inflow_m3s, -7.0), noise.load_mw, noise.availability)
    chains = Chains.single(
        np.zeros((1, context.problem.dimension)), negative, np.zeros(1, np.int32), context.state.bases[1]
    )
    with pytest.raises(StageFailedError, match=r"receives 0 hm3 .*inflow 0 m3/s") as raised:
        context.solve(Phase.BACKWARD, 1, 1, chains, Outputs())
    assert json.loads(raised.value.saved.with_suffix(".json").read_text())["inflow_m3s"] == [0.0]


def test_no_advice_for_plant_that_receives_releases(tmp_path):
    """Releases from upstream might have sufficed, so no advice is given."""
    case = SmallCase(
        hydros=[hydro(0, downstream=1, storage=(0.0, 100.0)), hydro(1, storage=(50.0, 100.0))],
        thermals=[thermal(0, 10.0, 90.0)],
        stages=2,
        openings=2,
        load={0: 60.0},
        inflow={0: (0.0, 0.0), 1: (0.0, 0.0)},
        storage={0: 60.0, 1: 60.0},
        method="none",
    )
    context = context_of(case.write(tmp_path))
    noise, cold = context.problem.openings[1].realisations, no_bases(context.problem.stages[1].program)
    chains = Chains.single(np.zeros((1, 2)), noise, np.zeros(1, np.int32), cold)
    with pytest.raises(StageFailedError, match=r"infeasible.*Check the limits"):
        context.solve(Phase.BACKWARD, 1, 1, chains, Outputs())


@pytest.mark.parametrize(
    ("status", "words"),
    [("unbounded", "earns money without limit"), ("unbounded or infeasible", "Check the limits")],
)
def test_advice_is_given_only_if_certain(context, status, words):
    stage, zeros = context.problem.stages[1], np.zeros(1)
    basis = StartingBasis(None, (), 0)
    failed = FailedSolve(stage, 1, "here", status, np.array([60.0]), zeros, zeros, zeros, basis)
    assert words in failed.explain(EntityNames(("H0",)))


def test_forward_pass_reports_and_saves_failed_lp_without_second_solve(context):
    context.problem.openings[1].realisations.inflow_m3s[:] = -1000.0
    done = context.solver.solves_done
    with pytest.raises(StageFailedError, match=r"^stage 1 .* iteration 2, trial point 0: .*Too little water") as raised:
        iterate(context, 2, None)
    assert context.solver.solves_done == done + 1  # the first stage of the first path
    assert raised.value.stage_id == 1
    content = json.loads(raised.value.saved.with_suffix(".json").read_text())
    assert content["inflow_m3s"] == [-1000.0]
    assert content["basis"]["columns"] is not None
    assert "ROWS" in raised.value.saved.read_text()


def test_simulation_reports_scenario_of_failed_lp(context):
    context.problem.openings[1].realisations.inflow_m3s[:] = -1000.0
    simulator = PolicySimulator(
        context.problem, context.solver, context.pool, context.sampler, failure_folder=context.failure_folder
    )
    with pytest.raises(StageFailedError, match=r"^stage 1 .* simulated scenario 0: ") as raised:
        simulator.starting_bases()
    assert raised.value.saved.name == "scenario0-stage1.mps"
