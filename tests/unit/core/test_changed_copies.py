"""Tests of `cobre.changed`: copies of a case with other values of some fields."""

from pathlib import Path

import pytest

import cobre

CASE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"


@pytest.fixture(scope="module")
def case():
    return cobre.load_case(CASE)


def test_settings_and_entities(case):
    new = cobre.changed(case, {"config.training.tree_seed": 7, "system.hydros[1].reservoir.max_storage_hm3": 500.0})
    assert new.config.training.tree_seed == 7
    assert new.system.hydros[1].reservoir.max_storage_hm3 == 500.0
    assert new.system.hydros[0] is case.system.hydros[0]


def test_original_case_is_not_modified(case):
    before = case.config.training.tree_seed
    cobre.changed(case, {"config.training.tree_seed": before + 1})
    assert case.config.training.tree_seed == before


def test_whole_entity(case):
    plant = cobre.changed(case.system.thermals[0], {"cost_per_mwh": 1.0})
    new = cobre.changed(case, {f"system.thermals[{plant.id}]": plant})
    assert new.system.thermals[0] is plant


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("config.trainin.tree_seed", "no setting or field 'trainin'; there are estimation"),
        ("system.hydros[9].name", "no entity with the id 9; there are 0, 1"),
        ("system.hydros.name", "no fields before 'name'"),
        ("config.training[3]", "not a list of entities"),
        ("system.hydros[x]", "not a field name"),
        ("", "not a field name"),
    ],
)
def test_unknown_field_path_raises_key_error(case, path, words):
    with pytest.raises(KeyError) as caught:
        cobre.changed(case, {path: 1})
    assert words in caught.value.args[0]


def test_case_in_memory_trains_like_its_directory(case):
    digests = {cobre.train(given, iterations=2, threads=1).digest for given in (case, CASE)}
    assert len(digests) == 1
