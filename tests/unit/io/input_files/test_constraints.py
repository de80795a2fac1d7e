"""The files of generic constraints."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cobre.core.case import ABSENT_ID
from cobre.core.generic_constraints import Coefficient, GenericConstraints, Parameter, Term
from cobre.io.decoding.json_documents import read_document
from cobre.io.decoding.parquet_tables import read_table
from cobre.io.findings import Findings, Layer
from cobre.io.input_files.generic_constraints import BOUNDS, read_generic_constraints

SLACK = {"enabled": True, "penalty": 100.0}


def constraint(id_=1, expression="thermal_generation(0)", **others):
    return {"id": id_, "name": f"c{id_}", "expression": expression, "slack": {"enabled": False}, **others}


def write(folder, constraints=None, expressions=None, parameters=None, bounds=None):
    target = folder / "constraints"
    target.mkdir(exist_ok=True)
    if constraints is not None:
        content = {"constraints": constraints} | ({"expressions": expressions} if expressions else {})
        (target / "generic_constraints.json").write_text(json.dumps(content))
    if parameters is not None:
        (target / "generic_parameters.json").write_text(json.dumps(parameters))
    if bounds is not None:
        parquet.write_table(bounds, target / "generic_constraint_bounds.parquet")
    return folder


def read(folder):
    problems = Findings()
    constraints, parameters = (
        read_document(folder, f"constraints/generic_{name}.json", problems) for name in ("constraints", "parameters")
    )
    bounds = read_table(folder, BOUNDS, problems)
    return read_generic_constraints(constraints, parameters, bounds, problems), problems


def problem_texts(folder):
    return [str(problem) for problem in read(folder)[1].errors]


def parameters(*entries):
    return {"scalar_parameters": list(entries)}


def test_missing_constraint_files_give_no_constraints(tmp_path):
    found, problems = read(tmp_path)
    assert found == GenericConstraints()
    assert len(problems) == 0


def test_all_constraint_files_are_read(tmp_path):
    bounds = pa.table(
        {
            "constraint_id": pa.array([2, 1, 1], pa.int32()),
            "stage_id": pa.array([0, 1, 0], pa.int32()),
            "block_id": pa.array([None, 0, None], pa.int32()),
            "bound_lower": pa.array([1.0, None, None], pa.float64()),
            "bound_upper": pa.array([None, 5.0, 4.0], pa.float64()),
        }
    )
    write(
        tmp_path,
        [
            constraint(2, "@load <= 7", description="a cap", slack=SLACK),
            constraint(1, "@k * hydro_turbined(3, 0, bus=2)"),
        ],
        [
            {"name": "load", "expression": "@net + @k"},
            {"name": "net", "expression": "thermal_generation(0) - bus_deficit(1)"},
        ],
        parameters({"id": 9, "name": "k", "kind": "constant", "value": 3}) | {"$schema": "x", "note": "allowed here"},
        bounds,
    )
    found, problems = read(tmp_path)
    assert [str(problem) for problem in problems] == []
    first, second = found.constraints
    assert (first.id, second.id) == (1, 2)
    assert first.terms == (Term(Coefficient(1.0, ("k",)), "hydro_turbined", 3, 0, 2),)
    assert (first.relation, first.slack_enabled, first.slack_penalty) == (None, False, None)
    assert second.description == "a cap"
    assert second.terms == (Term(Coefficient(1.0), "thermal_generation", 0), Term(Coefficient(-1.0), "bus_deficit", 1))
    assert second.constant == (Coefficient(1.0, ("k",)),)
    assert (second.relation, second.bound) == ("<=", (Coefficient(7.0),))
    assert (second.slack_enabled, second.slack_penalty) == (True, 100.0)
    assert found.parameters == {"k": Parameter(9, "k", "constant", {None: 3.0})}
    assert found.bounds is not None
    assert found.bounds["constraint_id"].tolist() == [1, 1, 2]
    assert found.bounds["block_id"].tolist() == [ABSENT_ID, 0, ABSENT_ID]
    np.testing.assert_array_equal(found.bounds["bound_upper"], [4.0, 5.0, np.nan])


def test_every_kind_of_parameter_is_read(tmp_path):
    write(
        tmp_path,
        [],
        parameters=parameters(
            {"id": 0, "name": "a", "kind": "constant", "value": 1.5},
            {"id": 1, "name": "b", "kind": "per_stage", "values": [[0, 1.0], [1, 2.0]]},
            {"id": 2, "name": "c", "kind": "seasonal", "values": [[11, 1], [3, 2.0]]},
            {"id": 3, "name": "d", "kind": "per_stage_block", "block_values": [[0, 0, 1.0], [0, 1, 2.0]]},
            {"id": 4, "name": "e", "kind": "computed", "computed_spec": {"tag": "max_storage", "hydro_id": 7}},
        ),
    )
    found, problems = read(tmp_path)
    assert not problems.errors
    assert {name: dict(entry.values) for name, entry in found.parameters.items()} == {
        "a": {None: 1.5},
        "b": {0: 1.0, 1: 2.0},
        "c": {11: 1.0, 3: 2.0},
        "d": {(0, 0): 1.0, (0, 1): 2.0},
        "e": {},
    }
    assert (found.parameters["e"].computed_tag, found.parameters["e"].hydro_id) == ("max_storage", 7)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "constant"}, "value: is missing"),
        ({"kind": "constant", "value": 1, "values": [[0, 1.0]]}, "values: cannot be combined with kind constant"),
        ({"kind": "per_stage", "value": 1}, "value: cannot be combined with kind per_stage"),
        ({"kind": "per_stage", "values": [[0, 1.0], [0, 2.0]]}, "values: a key is given twice"),
        ({"kind": "per_stage_block", "block_values": [[0, 0, 1.0], [0, 0, 2.0]]}, "a key is given twice"),
        ({"kind": "computed", "computed_spec": {"tag": "colour", "hydro_id": 0}}, "computed_spec.tag: is 'colour'"),
        ({"kind": "weekly", "value": 1}, "kind: is 'weekly'"),
        ({"kind": "constant", "value": "1"}, "value: is '1'"),
        ({"kind": "constant", "value": 1, "source": "x"}, "source: is not a field"),
        ({"kind": "constant", "value": 1, "name": "my k"}, "`my k` cannot be used after `@`"),
    ],
)
def test_invalid_parameters_are_reported(tmp_path, entry, words):
    write(tmp_path, [], parameters=parameters({"id": 0, "name": "k"} | entry))
    texts = problem_texts(tmp_path)
    assert any(words in text for text in texts), texts
    assert all(text.startswith("constraints/generic_parameters.json, parameter 0") for text in texts)


def test_duplicate_parameters_are_reported(tmp_path):
    entry = {"id": 0, "name": "k", "kind": "constant", "value": 1}
    write(tmp_path, [], parameters=parameters(entry, entry))
    texts = problem_texts(tmp_path)
    assert any("the id 0" in text for text in texts)
    assert any("the name k" in text for text in texts)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([constraint(1), constraint(1)], "id: another constraint has this id"),
        ([constraint(slack={"enabled": True})], "slack.penalty: a slack without a cost"),
        ([constraint(slack={"enabled": True, "penalty": 0})], "slack.penalty: is 0 (expected a number above 0)"),
        ([constraint(sense="<=")], "sense: is not a field"),
        ([{"id": 1, "name": "c", "expression": "thermal_generation(0)"}], "slack: is missing"),
        ([constraint(expression="foo(1)")], "constraint 1 (c1), expression: at character 1: `foo` is not a variable"),
    ],
)
def test_invalid_constraints_are_reported(tmp_path, constraints, words):
    texts = problem_texts(write(tmp_path, constraints))
    assert any(words in text for text in texts), texts


def test_circular_named_expressions_are_reported(tmp_path):
    circle = [{"name": "a", "expression": "@b"}, {"name": "b", "expression": "@a"}]
    texts = problem_texts(write(tmp_path, [constraint(expression="@a")], circle))
    assert len(texts) == 1
    assert "in a cycle: @a, @b" in texts[0]


def test_names_are_shared_between_parameters_and_expressions(tmp_path):
    write(
        tmp_path,
        [constraint()],
        [{"name": "k", "expression": "bus_deficit(0)"}, {"name": "1k", "expression": "bus_deficit(0)"}],
        parameters({"id": 0, "name": "k", "kind": "constant", "value": 1}),
    )
    texts = problem_texts(tmp_path)
    assert any("expression k, name: another expression or a parameter" in text for text in texts)
    assert any("`1k` cannot be used after `@`" in text for text in texts)


def test_all_constraint_errors_are_reported_together(tmp_path):
    expressions = [{"name": "a", "expression": "foo(0)"}]
    texts = problem_texts(write(tmp_path, [constraint(1, "@a"), constraint(2, "@a + bus(")], expressions))
    assert len(texts) == 2
    assert "expression a, expression: at character 1" in texts[0]
    assert "constraint 2 (c2), expression: at character 6" in texts[1]


def test_bounds_have_strict_types(tmp_path):
    bounds = pa.table({"constraint_id": [1], "stage_id": pa.array([0], pa.int32()), "bound_upper": [1.0]})
    texts = problem_texts(write(tmp_path, [constraint()], bounds=bounds))
    assert len(texts) == 1
    assert "constraint_id: expected int32, got int64" in texts[0]


def test_bounds_without_constraints(tmp_path):
    bounds = pa.table({"constraint_id": pa.array([1], pa.int32()), "stage_id": pa.array([0], pa.int32())})
    _, problems = read(write(tmp_path, bounds=bounds))
    assert [problem.layer for problem in problems.errors] == [Layer.STRUCTURE]
