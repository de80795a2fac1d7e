"""Trees of nodes under enumerated selection: exact bounds, one value function for each node."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from crafted_case import CraftedCase, Period, months, write_crafted
from crafted_forms import tree_optimum
from tree_cases import TREES, drawn_tree

import cobre
import cobre.results
import cobre.run
from cobre.comm.backends.local import LocalCommunicator
from cobre.errors import ValidationError
from cobre.io.case import load_case
from cobre.sddp.plugins.interfaces import RiskMeasure
from cobre.sddp.training.tree_iteration import iterate_tree
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import training_context


@pytest.mark.parametrize("name", TREES)
def test_both_bounds_equal_optimum_of_tree(tmp_path, name):
    case = TREES[name]
    result = cobre.train(write_crafted(tmp_path, case), threads=1)
    optimum = tree_optimum(case)
    assert result.lower_bound == pytest.approx(optimum, rel=1e-7)
    assert result.upper_bound == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("name", ["cascade", "averse"])
def test_ranks_and_threads_do_not_change_bits(tmp_path, name):
    folder = write_crafted(tmp_path, TREES[name])
    alone = cobre.train(folder, threads=1)
    others = [cobre.train(folder, threads=2), *(cobre.train(folder, num_workers=n, threads=1) for n in (2, 3))]
    assert {other.digest for other in others} == {alone.digest}
    tables = [cobre.simulate(folder, alone.policy, num_workers=workers).digest for workers in (1, 3)]
    assert len(set(tables)) == 1


def test_simulated_paths_are_weighted_by_probability(tmp_path):
    case = TREES["binary"]
    folder = write_crafted(tmp_path, case)
    trained = cobre.train(folder, threads=1)
    simulated = cobre.simulate(folder, trained.policy, threads=1)
    assert len(simulated.scenario_costs) == 8
    assert simulated.mean_cost == pytest.approx(trained.upper_bound, rel=1e-9)


def test_sampled_paths_of_a_tree_are_drawn_by_their_probabilities(tmp_path):
    case = replace(TREES["fan"], simulation={"selection": {"method": "sampled", "num_scenarios": 600}})
    folder = write_crafted(tmp_path, case)
    trained = cobre.train(folder, threads=1)
    simulated = cobre.simulate(folder, trained.policy, threads=1)
    assert len(set(simulated.scenario_costs)) == 4
    assert simulated.mean_cost == pytest.approx(trained.upper_bound, abs=5.0 * simulated.std_cost / 600**0.5)


@pytest.mark.parametrize(
    "rule", [{"type": "gap", "tolerance": 1.0}, {"type": "gap", "relative_tolerance": 1e-6}], ids=["$", "percent"]
)
def test_closed_gap_ends_run(tmp_path, rule):
    case = replace(TREES["binary"], rules=({"type": "iteration_limit", "limit": 50}, rule))
    result = cobre.train(write_crafted(tmp_path, case), threads=1)
    assert result.iterations < 50
    assert result.stop_kind == "gap"
    assert "exact upper bound" in result.stop_reason


def test_policy_of_a_tree_is_unchanged_when_written_and_read(tmp_path):
    folder = write_crafted(tmp_path / "case", TREES["cascade"])
    cobre.run.run(folder, tmp_path / "run", threads=1)
    trained = cobre.train(folder, threads=1)
    stored = cobre.simulate(folder, tmp_path / "run", threads=1)
    assert stored.scenario_costs == cobre.simulate(folder, trained.policy, threads=1).scenario_costs


def test_inflow_lags_follow_branches(tmp_path):
    """Check external inflows of a plant with lags: paths follow the scenarios, and cuts include the lags."""
    case = drawn_tree(11, branches=(2, 2))
    lagged = replace(
        case,
        periods=[Period(p.start, p.end, number, None) for number, p in enumerate(case.periods)],
        seasons=months(),
        inflow={(0, stage): (60.0, 30.0) for stage in range(-1, 3)},
        memory={(0, stage, 1): 0.5 for stage in range(3)},
        observed=[(0, "2023-12-01", "2024-01-01", 90.0)],
    )
    plain = cobre.train(write_crafted(tmp_path / "plain", case), threads=1)
    result = cobre.train(write_crafted(tmp_path / "lags", lagged), threads=1)
    assert result.lower_bound == pytest.approx(plain.lower_bound, rel=1e-9)


def test_nodes_without_data_equal_chain_of_stages(tmp_path):
    """Check that nodes of a stage are equal under sampled selection, for any transitions."""
    periods = [Period(f"2024-0{m}-01", f"2024-0{m + 1}-01") for m in range(1, 5)]
    chain = CraftedCase(periods=periods, inflow={(0, stage): (60.0, 25.0) for stage in range(4)}, load_mw=150.0)
    nodes = [{"id": id_, "stage_id": stage} for id_, stage in ((0, 0), (1, 1), (2, 1), (3, 2), (5, 2), (4, 3))]
    ends = ((0, 1, 0.3), (0, 2, 0.7), (1, 3, 0.5), (1, 5, 0.5), (2, 3, 0.9), (2, 5, 0.1), (3, 4, 1.0), (5, 4, 1.0))
    edges = [{"source_id": a, "target_id": b, "probability": p} for a, b, p in ends]
    graph = replace(chain, nodes=nodes, transitions=edges)
    folders = [write_crafted(tmp_path / name, one) for name, one in (("chain", chain), ("graph", graph))]
    results = [cobre.train(folder, threads=1) for folder in folders]
    assert results[0].digest == results[1].digest


def test_tables_contain_node_and_probability_of_paths(tmp_path):
    """Check node and probability of each scenario, in our tables and in the exported ones."""
    folder = write_crafted(tmp_path / "case", TREES["fan"])
    cobre.run.run(folder, tmp_path / "run", threads=1)
    costs = cobre.results.load_simulation_arrow(tmp_path / "run", "costs")
    nodes = {edge["target_id"]: edge["probability"] for edge in TREES["fan"].transitions}
    last = [row["node_id"] for row in costs.to_pylist() if row["stage_id"] == 1]
    assert sorted(last) == sorted(nodes)
    paths = pq.read_table(tmp_path / "run" / "simulation" / "tree_paths.parquet").to_pylist()
    assert {row["node_id"]: row["probability"] for row in paths if row["stage_id"] == 1} == pytest.approx(nodes)
    bounds = cobre.results.load_results(tmp_path / "run")["training"]["manifest"]["bounds"]
    assert bounds["final_upper_bound_kind"] == "exact"


class WorstOpening(RiskMeasure):
    """A risk measure of a user that supports only equally likely openings."""

    def weights(self, costs):
        return (np.arange(costs.shape[1]) == costs.argmax(axis=1)[:, None]).astype(float)


class WorstChild(WorstOpening):
    """The same for children with any probabilities."""

    def weights_for(self, costs, probabilities):
        return self.weights(costs[None])[0]


def tree_context(folder, measure):
    """Return a context of the case under another risk measure, and its tree."""
    study = prepare(load_case(folder))
    study = replace(study, problem=replace(study.problem, risk=(measure,) * study.problem.num_stages))
    return training_context(LocalCommunicator(), study, make_solver(study, 1), 1), study.problem.tree


def test_plugin_risk_measure_weighs_children(tmp_path):
    context, tree = tree_context(write_crafted(tmp_path, TREES["binary"]), WorstChild())
    results = [iterate_tree(context, tree, iteration, None) for iteration in range(1, 26)]
    assert results[-1].exact == pytest.approx(results[-1].costs.max(), rel=1e-9)  # the worst path, not the mean
    assert results[-1].lower_bound == pytest.approx(results[-1].exact, rel=1e-7)


def test_risk_measure_without_weights_for_unequal_children_raises(tmp_path):
    context, tree = tree_context(write_crafted(tmp_path, TREES["binary"]), WorstOpening())
    with pytest.raises(ValidationError, match="WorstOpening has no weights for unequal probabilities"):
        iterate_tree(context, tree, 1, None)
