"""Invalid policy graphs and calendars are all reported in one run."""

from dataclasses import replace

import pytest
from crafted_case import CraftedCase, Period, months, quarters, write_crafted
from tree_cases import TREES

import cobre

TREE = TREES["binary"]
SAMPLED = {"method": "sampled", "forward_passes": 2}


def edges(change):
    return lambda case: replace(case, transitions=change([dict(edge) for edge in case.transitions]))


def nodes(change):
    return lambda case: replace(case, nodes=change([dict(node) for node in case.nodes]))


def first(**fields):
    return lambda rows: [rows[0] | fields, *rows[1:]]


def sampled(case):
    return replace(case, selection=SAMPLED, periods=[replace(period, openings=1) for period in case.periods])


CORRUPTED = {
    "unknown stage": (nodes(first(stage_id=9)), "node 0, stage_id: there is no stage 9"),
    "twice": (nodes(lambda rows: [*rows, rows[-1]]), "id: is used 2 times"),
    "unknown end": (edges(first(target_id=999)), "there is no node 999"),
    "probability": (edges(first(probability=0.9999)), "the probabilities of leaving node 0 sum to"),
    "beyond 1": (edges(first(probability=1.5)), "probability: is 1.5 (expected between 0 and 1)"),
    "skips a stage": (
        edges(lambda rows: [*rows[:-1], rows[-1] | {"source_id": 0}]),
        "does not lead from a stage to the next",
    ),
    "two parents": (
        edges(lambda rows: [*rows, rows[-1] | {"source_id": rows[-3]["source_id"]}]),
        "more than one parent of node",
    ),
    "orphan": (edges(lambda rows: rows[:-1]), "no transition leads there"),
    "early end": (edges(lambda rows: rows[:-2]), "paths end before the last stage"),
    "two roots": (
        nodes(lambda rows: [*rows, {"id": 777, "stage_id": 0, "scenario_id": 0}]),
        "policy_graph.nodes: stage 0 has 2 nodes",
    ),
    "edge rate": (edges(first(annual_discount_rate_override=0.1)), "a transition between nodes has no rate of its own"),
    "no scenario": (nodes(first(scenario_id=None)), "node 0, scenario_id: is missing"),
    "other scenario": (nodes(first(scenario_id=4)), "is 4, but stage 0 has scenario 0"),
    "scenario of sampled paths": (lambda case: replace(sampled(case), simulation=None), "but selection is sampled"),
    "gap of sampled paths": (
        lambda case: replace(sampled(case), rules=(*case.rules, {"type": "gap", "tolerance": 1.0})),
        "the rule `gap` needs paths drawn from the openings",
    ),
    "gap without tolerance": (
        lambda case: replace(case, rules=(*case.rules, {"type": "gap"})),
        "the rule `gap` has no tolerance",
    ),
    "several openings": (
        lambda case: replace(
            case,
            source=None,
            external=(),
            nodes=[n | {"scenario_id": None} for n in case.nodes],
            periods=[replace(period, openings=2) for period in case.periods],
        ),
        "stages.num_openings: is above 1 in stages 0, 1, 2, 3",
    ),
    "simulation alone": (
        lambda case: replace(
            case,
            selection=SAMPLED,
            nodes=(),
            transitions=(),
            periods=[replace(period, openings=1) for period in case.periods],
        ),
        "simulation.selection: is enumerated, but training is sampled",
    ),
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_unusable_graph_is_reported(tmp_path, name):
    corrupt, words = CORRUPTED[name]
    with pytest.raises(cobre.errors.ValidationError) as error:
        cobre.train(write_crafted(tmp_path, corrupt(TREE)))
    assert words in str(error.value)


def test_all_problems_are_reported_together(tmp_path):
    corrupted = nodes(first(scenario_id=4))(edges(first(probability=1.5))(TREE))
    with pytest.raises(cobre.errors.ValidationError) as error:
        cobre.train(write_crafted(tmp_path, corrupted))
    assert "is 1.5 (expected between 0 and 1)" in str(error.value)
    assert "is 4, but stage 0" in str(error.value)


def test_overlapping_seasons_are_reported(tmp_path):
    seasons = {"cycle_type": "custom", "seasons": months("custom")["seasons"] + quarters(12)}
    case = CraftedCase(
        periods=[Period("2024-01-01", "2024-02-01"), Period("2024-02-01", "2024-03-01")],
        seasons=seasons,
        inflow={(0, stage): (80.0, 20.0) for stage in (-1, 0, 1)},
        memory={(0, 1, 1): 0.5},
        observed=[(0, "2023-12-01", "2024-01-01", 90.0)],
    )
    with pytest.raises(cobre.errors.ValidationError) as error:
        cobre.train(write_crafted(tmp_path, case))
    assert "stages.season_id: is missing in stages 0, 1" in str(error.value)
