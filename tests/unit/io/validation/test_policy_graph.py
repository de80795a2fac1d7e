"""Rules on the policy graph: chains, trees and graphs of nodes, each corrupted in one way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cobre.core.config import Enumerated, InflowScheme, SampledTraining, ScenarioSource
from cobre.core.stopping import Gap, IterationLimit
from cobre.core.temporal import Horizon, Node, PolicyGraph, Transition
from cobre.io.case import load_case
from cobre.io.findings import Findings
from cobre.io.validation import policy_graph as graph
from cobre.io.validation import settings

# Stage 0 has the root 10; stage 1 has the nodes 20 and 21; stage 2 has 30 after 20, and 31 after 21.
NODES = tuple(Node(id_, stage) for id_, stage in ((10, 0), (20, 1), (21, 1), (30, 2), (31, 2)))
EDGES = tuple(Transition(*edge) for edge in ((10, 20, 0.25), (10, 21, 0.75), (20, 30, 1.0), (21, 31, 1.0)))


@pytest.fixture(scope="module")
def example():
    return load_case(Path(__file__).parents[4] / "examples" / "two_reservoirs")


def problems(rule, example, nodes=(), edges=(), **changes):
    """Return entity, field and message of the findings in a study of three stages with this graph."""
    openings = changes.pop("openings", 1)
    stages = tuple(replace(stage, num_openings=openings) for stage in example.horizon.stages[:3])
    training = replace(example.config.training, **changes.pop("training", {}))
    simulation = replace(example.config.simulation, **changes.pop("simulation", {}))
    case = replace(
        example,
        horizon=Horizon(PolicyGraph("finite_horizon", 0.0, tuple(edges), tuple(nodes)), stages),
        config=replace(example.config, training=training, simulation=simulation),
        **changes,
    )
    found = Findings()
    rule(case, found)
    return [(problem.entity, problem.field, problem.message) for problem in found.errors]


@pytest.mark.parametrize("rule", graph.RULES)
def test_chain_and_tree_are_valid(example, rule):
    assert problems(rule, example, edges=[Transition(0, 1, 1.0), Transition(1, 2, 1.0)]) == []
    enumerated = {"selection": Enumerated()}
    assert problems(rule, example, NODES, EDGES, training=enumerated, simulation=enumerated) == []


def test_without_nodes_transitions_lead_to_the_next_stage(example):
    [(entity, field, message)] = problems(graph.transitions_of_stages, example, edges=[Transition(0, 2, 1.0)])
    assert (entity, field) == ("transition 0 -> 2", "target_id")
    assert "does not lead to the next stage" in message


def test_probabilities_of_leaving_a_node_sum_to_one(example):
    edges = [Transition(10, 20, 0.25), Transition(10, 21, 0.5), *EDGES[2:]]  # 0.75 in all
    field = "policy_graph.transitions.probability"
    expected = [("node 10", field, "the probabilities of leaving node 10 sum to 0.75")]
    assert problems(graph.probabilities, example, NODES, edges) == expected


def test_negative_probability_is_reported_even_if_sum_is_one(example):
    edges = [Transition(10, 20, -0.5), Transition(10, 21, 1.5), *EDGES[2:]]
    assert [message for *_, message in problems(graph.probabilities, example, NODES, edges)] == ["is -0.5", "is 1.5"]


def test_probability_sum_tolerates_rounding(example):
    edges = [Transition(10, 20, 0.3333333), Transition(10, 21, 0.6666666), *EDGES[2:]]  # 1e-7 below 1
    assert problems(graph.probabilities, example, NODES, edges) == []


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([*NODES, Node(40, 9)], EDGES, "there is no stage 9"),
        (NODES, [*EDGES, Transition(20, 99, 0.0)], "there is no node 99"),
        (NODES, [*EDGES, Transition(10, 30, 0.0)], "does not lead from a stage to the next"),
        (NODES, [*EDGES, EDGES[0]], "appears 2 times"),
        (NODES, [*EDGES[:3], replace(EDGES[3], annual_discount_rate_override=0.1)], "no rate of its own"),
    ],
)
def test_nodes_and_edges_inconsistent_with_stages_are_reported(example, nodes, edges, message):
    [(*_, found)] = problems(graph.nodes_and_edges, example, nodes, edges)
    assert message in found


@pytest.mark.parametrize(
    ("nodes", "edges", "expected"),
    [
        ([Node(9, 0), *NODES], [Transition(9, 20, 1.0), *EDGES], ("", "stage 0 has 2 nodes (9, 10)")),
        (NODES, EDGES[:3], ("node 31", "no transition leads there")),
        (NODES, EDGES[:3], ("node 21", "paths end before the last stage")),
    ],
)
def test_paths_lead_from_one_root_to_the_last_stage(example, nodes, edges, expected):
    found = problems(graph.paths_from_root_to_leaves, example, nodes, edges)
    assert expected in [(entity, message) for entity, _, message in found]


def test_enumerated_selection_requires_single_parents(example):
    edges = [*EDGES[:3], Transition(21, 30, 1.0), Transition(20, 31, 0.0)]
    [(*_, message)] = problems(graph.enumerated_trees, example, NODES, edges, training={"selection": Enumerated()})
    assert message == "more than one parent of node 30, but selection is enumerated"


def test_enumerated_simulation_requires_enumerated_training(example):
    simulation = {"enabled": True, "selection": Enumerated()}
    [(_, field, message)] = problems(graph.enumerated_trees, example, NODES, EDGES, simulation=simulation)
    assert (field, message[:13]) == ("simulation.selection", "is enumerated")


def test_scenario_of_node_is_rejected_with_sampled_selection(example):
    nodes = [replace(NODES[0], scenario_id=0), *NODES[1:]]
    [(_, field, message)] = problems(graph.enumerated_trees, example, nodes, EDGES)
    assert (field, message) == (
        "policy_graph.nodes.scenario_id",
        "is given for node 10, but selection is sampled",
    )


def test_each_node_of_a_tree_has_one_realisation(example):
    found = problems(graph.enumerated_trees, example, NODES, EDGES, openings=2, training={"selection": Enumerated()})
    assert [message for *_, message in found] == ["is above 1 in stages 0, 1, 2, but selection is enumerated"]


def test_nodes_name_an_external_scenario_of_their_stage(example):
    # Two scenarios in each of the three stages: ids 0 and 1.
    table = {"stage_id": np.repeat([0, 1, 2], 2), "scenario_id": np.tile([0, 1], 3)}
    source = replace(example.config.training.scenario_source, inflow=InflowScheme("external"))
    options = {
        "training": {"selection": Enumerated(), "scenario_source": source},
        "scenarios": replace(example.scenarios, external_inflow_scenarios=table),
    }
    nodes = [replace(node, scenario_id=node.id % 2) for node in NODES]
    assert problems(graph.enumerated_trees, example, nodes, EDGES, **dict(options)) == []
    wrong = [replace(nodes[0], scenario_id=2), replace(nodes[1], scenario_id=None), *nodes[2:]]
    assert problems(graph.enumerated_trees, example, wrong, EDGES, **dict(options)) == [
        ("node 10", "scenario_id", "is 2, but stage 0 has scenarios 0, 1"),
        ("node 20", "scenario_id", "is missing: its stage has external scenarios"),
    ]


def test_gap_rule_requires_policy_cost_and_tolerance(example):
    rules = {"stopping_rules": (IterationLimit(5), Gap(tolerance=1.0))}
    assert problems(settings.gap_rules, example, training=rules) == []
    fresh = rules | {"scenario_source": ScenarioSource.of(inflow="out_of_sample", seed=1)}
    [(_, field, message)] = problems(settings.gap_rules, example, training=fresh)
    assert (field, "needs paths drawn from the openings" in message) == ("training.stopping_rules", True)
    assert problems(settings.gap_rules, example, training=fresh | {"selection": SampledTraining(4, 0.5)}) == []
    rules = {"stopping_rules": (IterationLimit(5), Gap()), "selection": Enumerated()}
    assert [message for *_, message in problems(settings.gap_rules, example, training=rules)] == [
        "the rule `gap` has no tolerance"
    ]
