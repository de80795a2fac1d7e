"""A changed copy of a case: all changes or none, and no change outside the copy."""

import json
import shutil
from pathlib import Path

import pytest

import cobre
from cobre.errors import CobreError
from cobre.io.case_folder.new_cases import CasePatchError, Patch, json_files, patched_case

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "two_reservoirs"

THERMALS = "system/thermals.json"


@pytest.fixture
def case(tmp_path):
    return shutil.copytree(EXAMPLE, tmp_path / "case", ignore=shutil.ignore_patterns("output"))


def test_values_are_replaced_and_plants_added_and_removed(case, tmp_path):
    before = {path: path.read_bytes() for path in case.rglob("*") if path.is_file()}
    plant = {**json.loads((case / THERMALS).read_text())["thermals"][0], "id": 7, "name": "new"}
    patches = [
        Patch(THERMALS, "replace", "/thermals/0/cost_per_mwh", 1.5),
        Patch(THERMALS, "add", "/thermals/-", plant),
        Patch(THERMALS, "remove", "/thermals/1"),
        Patch("config.json", "add", "/training/tree_seed", 7),
    ]
    patched_case(case, tmp_path / "new", patches)
    found = cobre.load_case(tmp_path / "new")
    assert [plant.id for plant in found.system.thermals] == [0, 2, 7]
    assert found.system.thermals[0].cost_per_mwh == 1.5
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (Patch(THERMALS, "move", "/thermals/0"), "add, replace, remove"),
        (Patch(THERMALS, "remove", "thermals"), "must begin with /"),
        (Patch(THERMALS, "remove", "/thermals/3"), "not an index of a list of 2"),
        (Patch(THERMALS, "remove", "/hydros/0"), "there are thermals"),
        (Patch(THERMALS, "replace", "/thermals/0/colour", 1), "there is no 'colour'"),
        (Patch(THERMALS, "add", "/thermals/0/id/x", 1), "a plain value has no fields"),
        (Patch("system/nothing.json", "add", "/x", 1), "there is no system/nothing.json"),
        (Patch("README.md", "add", "/x", 1), "not a JSON file"),
        (Patch("../case/config.json", "add", "/x", 1), "is outside the case"),
        (Patch("/etc/x.json", "add", "/x", 1), "is outside the case"),
    ],
)
def test_failed_change_leaves_no_copy(case, tmp_path, patch, words):
    with pytest.raises(CasePatchError, match=words):
        patched_case(case, tmp_path / "new", [Patch(THERMALS, "remove", "/thermals/1"), patch])
    assert not (tmp_path / "new").exists()
    assert issubclass(CasePatchError, CobreError)


def test_result_files_are_not_case_files(case):
    (case / "output").mkdir()
    (case / "output" / "summary.json").write_text("{}")
    assert "output/summary.json" not in json_files(case)
    assert THERMALS in json_files(case)
