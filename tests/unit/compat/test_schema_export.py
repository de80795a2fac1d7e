"""cobre.schema: JSON Schemas that accept and refuse what the readers of cases do."""

import json
from pathlib import Path

import pytest

import cobre
from cobre.io.case_folder.case_files import OPTIONAL_JSON, REQUIRED_JSON
from cobre.io.case_folder.case_schemas import SCHEMAS

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: schemas are not tried")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TAGS = (
    "integrated_equivalent_productivity_mwh_per_hm3",
    "integrated_accumulated_productivity_mwh_per_hm3",
    "max_stored_energy_mwh",
)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemas") / "new"
    assert cobre.schema.export(folder) == len(SCHEMAS)
    return {path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in folder.iterdir()}


def test_every_json_file_has_a_schema(schemas):
    files = {*REQUIRED_JSON, *OPTIONAL_JSON}
    assert {file for file, _ in SCHEMAS.values()} == files
    assert schemas.keys() == SCHEMAS.keys()


def test_exported_schemas_are_valid_json_schemas(schemas):
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("case", ["two_reservoirs", "four_regions"])
def test_examples_conform_to_schemas(schemas, case):
    tried = 0
    for name, (file, _) in SCHEMAS.items():
        path = EXAMPLES / case / file
        if path.exists():
            jsonschema.validate(json.loads(path.read_text()), schemas[name])
            tried += 1
    assert tried >= 9


def test_files_rejected_by_readers_fail_schema(schemas):
    content = json.loads((EXAMPLES / "two_reservoirs" / "system" / "buses.json").read_text())
    content["buses"][0]["nmae"] = "typo"
    with pytest.raises(jsonschema.ValidationError, match="nmae"):
        jsonschema.validate(content, schemas["buses"])
    del content["buses"][0]["nmae"], content["buses"][0]["id"]
    with pytest.raises(jsonschema.ValidationError, match="'id' is a required property"):
        jsonschema.validate(content, schemas["buses"])


def test_schemas_are_exported_to_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cobre.schema.export()
    assert (tmp_path / "config.schema.json").exists()


def test_export_into_unwritable_folder_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(cobre.errors.OutputError, match="file"):
        cobre.schema.export(tmp_path / "file")


def places(node, path=()):
    """Return every field that states its format, by the object that has it."""
    if isinstance(node, dict):
        for key, part in node.items():
            if isinstance(part, dict) and "x-format" in part:
                yield path[-2] if len(path) > 1 else "", key, part["x-format"], part["description"]
            yield from places(part, (*path, key))


def test_fields_of_one_format_are_marked(schemas):
    found = {name: {(field, str(version)) for _, field, version, _ in places(schemas[name])} for name in schemas}
    only_old = str({"linearized_head": "0.18"})
    assert {name: fields for name, fields in found.items() if fields} == {
        "config": {
            ("lookback_iterations", "0.19"),
            ("cut_set", "0.19"),
            ("tie_tolerance", "0.18"),
            ("domination_tolerance", "0.18"),
            ("method", str({"lml1": "0.18"})),
            ("method", str({"domination": "0.18"})),
        },
        "generic_constraints": {("penalty_basis", "0.19")},
        "generic_parameters": {
            ("kind", str({"expression": "0.19"})),
            ("tag", str(dict.fromkeys(sorted(TAGS), "0.19"))),
        },
        "hydros": {("max_flow_m3s", str({"null": "0.19"})), ("model", only_old)},
        "production_models": {
            ("turbined_fit_max_m3s", "0.19"),
            ("spillage_fit_max_m3s", "0.19"),
            ("model", only_old),
            ("default_model", only_old),
        },
    }
    said = {description for name in schemas for *_, description in places(schemas[name])}
    assert "In format 0.19 only: null, and leaving it out." in said
    assert "In format 0.18 only: lml1." in said
