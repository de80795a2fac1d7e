"""Codes of findings in every interface: reports, dictionaries, errors, the command line."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cobre
from cobre.io.findings import Finding, code_named

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"


@pytest.fixture
def invalid_case(tmp_path):
    folder = tmp_path / "case"
    shutil.copytree(EXAMPLE, folder)
    path = folder / "system" / "hydros.json"
    content = json.loads(path.read_text())
    content["hydros"][0]["reservoir"]["min_storage_hm3"] = -3.0
    path.write_text(json.dumps(content))
    return folder


def test_report_has_the_finding_as_data(invalid_case):
    [found] = cobre.validate(invalid_case).errors
    assert (found.code.name, found.value, found.expected, found.remedy) == ("negative-value", -3.0, "at least 0", "")
    assert str(found).endswith("reservoir.min_storage_hm3: is -3 (expected at least 0)")
    [plain] = cobre.validate(invalid_case).as_dict()["errors"]
    assert plain["code"] == "negative-value"
    assert plain["severity"] == "error"
    assert plain["subject"] == [{"kind": "hydro", "id": 0, "name": "Upper"}]
    assert (plain["entity"], plain["field"]) == ("hydro 0 (Upper)", "reservoir.min_storage_hm3")
    assert (plain["value"], plain["expected"], plain["remedy"]) == (-3.0, "at least 0", "")


def test_dictionaries_for_scripts_have_the_code(invalid_case):
    [found] = cobre.io.validate(invalid_case)["errors"]
    assert (found["kind"], found["code"], found["value"]) == ("meaning", "negative-value", -3.0)


def test_error_has_the_findings_also_after_pickling(invalid_case):
    with pytest.raises(cobre.InvalidCaseError) as caught:
        cobre.load_case(invalid_case)
    error = pickle.loads(pickle.dumps(caught.value))
    assert [finding.code for finding in error.findings] == [code_named("negative-value")]
    assert error.details()["problems"][0]["code"] == "negative-value"


def test_command_line_prints_the_code_as_json(invalid_case):
    command = [sys.executable, "-m", "cobre.cli", "validate", str(invalid_case), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert [found["code"] for found in json.loads(done.stdout)["errors"]] == ["negative-value"]


def test_finding_values_are_converted_for_json():
    finding = Finding(code_named("end-not-after-start"), "a", (), "", {"value": {1: {2, 3}}, "start": 0, "period": "x"})
    assert finding.as_dict()["value"] == {"1": [2, 3]}
