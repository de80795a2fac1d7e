"""Messages for schema violations: location, value found, value expected."""

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobre.io.decoding.schema_errors import FileLocation, report_schema_errors
from cobre.io.findings import Findings, subject_text


class Plant(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    id: int
    name: str
    max_mw: float = Field(ge=0)
    fuel: Literal["gas", "coal"] = "gas"
    note: str = ""


class Limits(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    max_mwh: float = 0.0


class PlantsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    thermals: list[Plant]
    limits: Limits | None = None


def messages(content, file="system/thermals.json", **options):
    """Return entity, field, message and remedy of each violation."""
    problems = Findings()
    with pytest.raises(ValidationError) as caught:
        PlantsFile.model_validate(content)
    report_schema_errors(file, content, caught.value, PlantsFile, problems, **options)
    return [(found.entity, found.field, found.message, found.expected or found.remedy) for found in problems.errors]


def plant(**fields):
    return {"thermals": [{"id": 3, "name": "NORTH", "max_mw": 100.0, **fields}]}


@pytest.mark.parametrize(
    ("content", "path", "entity", "field"),
    [
        (plant(), ("thermals", 0, "max_mw"), "thermal 3 (NORTH)", "max_mw"),
        (plant(), ("thermals", 0, "segments", 2, "cost"), "thermal 3 (NORTH)", "segments[2].cost"),
        ({"storage": [{"hydro_id": 7}]}, ("storage", 0, "value_hm3"), "storage of hydro 7", "value_hm3"),
        ({"others": [{"id": 1}]}, ("others", 0), "others[0]", ""),
        ({"thermals": [{"max_mw": 1.0}]}, ("thermals", 0, "max_mw"), "thermals[0]", "max_mw"),
        ({"training": {}}, ("training", "tree_seed"), "", "training.tree_seed"),
    ],
)
def test_locations_name_the_entity_and_the_field(content, path, entity, field):
    location = FileLocation.of(content, path)
    assert (subject_text(location.subject), location.field) == (entity, field)


@pytest.mark.parametrize(
    ("fields", "field", "message", "remedy"),
    [
        ({"max_mw": "many"}, "max_mw", "is 'many'", "a number (MW)"),
        ({"max_mw": -1.0}, "max_mw", "is -1.0", "at least 0.0"),
        ({"max_mw": None}, "max_mw", "is null", "a number (MW)"),
        ({"max_mw": True}, "max_mw", "is true", "a number (MW)"),
        ({"max_mw": [1.0]}, "max_mw", "is an array", "a number (MW)"),
        ({"note": {}}, "note", "is an object", "a string"),
        ({"fuel": "oil"}, "fuel", "is 'oil'", "gas or coal"),
        ({"max_mws": 1.0}, "max_mws", "is not a field of the format", "did you mean `max_mw`?"),
        ({"colour": "red"}, "colour", "is not a field of the format", "remove it"),
        ({"gnl_config": {}}, "gnl_config", "is not a field of the format", "now `anticipated_config`"),
    ],
)
def test_violations_give_the_value_found_and_the_expected_one(fields, field, message, remedy):
    assert messages(plant(**fields)) == [("thermal 3 (NORTH)", field, message, remedy)]


@pytest.mark.parametrize(
    ("content", "name", "remedy"),
    [
        (plant(max_mhw=1.0), "max_mhw", "did you mean `max_mw`?"),
        (plant() | {"limits": {"max_mws": 1.0}}, "limits.max_mws", "did you mean `max_mwh`?"),
        (plant(max_mwh=1.0), "max_mwh", "did you mean `max_mw`?"),
        (plant() | {"limits": {"fuell": 1.0}}, "limits.fuell", "did you mean `fuel`?"),
        (
            plant() | {"limits": {"fuel": "gas"}},
            "limits.fuel",
            "it belongs to another object of this file: move or remove it",
        ),
    ],
)
def test_corrections_are_fields_of_the_same_object_first(content, name, remedy):
    [(_, field, _, found)] = messages(content)
    assert (field, found) == (name, remedy)


def test_missing_field_message_states_unit():
    assert messages({"thermals": [{"id": 3, "name": "NORTH"}]}) == [
        ("thermal 3 (NORTH)", "max_mw", "is missing", "add a number (MW)")
    ]


def test_long_values_are_shortened_to_sixty_characters():
    [(_, _, message, _)] = messages(plant(max_mw="x" * 100))
    assert message == "is '" + "x" * 56 + "..."


def test_file_without_root_object_is_reported():
    assert messages([])[0][:2] == ("", "(the whole file)")


def test_reported_paths_are_not_repeated():
    content = plant(max_mw="many", id="three")
    assert [field for _, field, _, _ in messages(content, reported={("thermals", 0, "id")})] == ["max_mw"]
