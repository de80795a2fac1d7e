"""The order of declaration has no effect."""

import random

import pytest
from shuffled_case import same
from validation_case import valid_documents, valid_tables, write_case

from cobre.io.case import load_case

ARRAYS = {
    "stages.json": ("stages", "pre_study_stages"),
    "initial_conditions.json": ("storage", "recent_observations"),
    "system/buses.json": ("buses",),
    "system/lines.json": ("lines",),
    "system/hydros.json": ("hydros",),
    "system/thermals.json": ("thermals",),
    "system/energy_contracts.json": ("contracts",),
    "system/hydro_production_models.json": ("production_models",),
    "constraints/generic_constraints.json": ("constraints",),
    "constraints/generic_parameters.json": ("scalar_parameters",),
}


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_files_give_the_same_case(tmp_path, seed):
    documents, tables = valid_documents(), valid_tables()
    (tmp_path / "a").mkdir()
    write_case(tmp_path / "a" / "case", documents, tables)
    shuffle = random.Random(seed).shuffle
    for name, arrays in ARRAYS.items():
        for array in arrays:
            shuffle(documents[name][array])
    for stage in documents["stages.json"]["stages"]:
        shuffle(stage["blocks"])
    for hydro in documents["system/hydros.json"]["hydros"]:
        shuffle(hydro["unit_groups"])
    for name, columns in tables.items():
        rows = list(zip(*columns.values(), strict=True))
        shuffle(rows)
        tables[name] = dict(zip(columns, (list(column) for column in zip(*rows, strict=True)), strict=True))
    write_case(tmp_path / "b" / "case", documents, tables)
    assert same(load_case(tmp_path / "a" / "case"), load_case(tmp_path / "b" / "case"))


def test_entities_are_sorted_by_date_then_id(tmp_path):
    documents = valid_documents()
    buses = documents["system/buses.json"]["buses"]
    buses[0]["operational_start_date"] = "2024-01-02"
    write_case(tmp_path, documents, valid_tables())
    assert [bus.id for bus in load_case(tmp_path).system.buses] == [1, 0]


def test_correlation_matrix_follows_its_entities(tmp_path):
    documents = valid_documents()
    group = documents["scenarios/correlation.json"]["profiles"]["default"]["correlation_groups"][0]
    group["entities"] = group["entities"][::-1]
    group["matrix"] = [row[::-1] for row in group["matrix"][::-1]]
    write_case(tmp_path / "a", documents, valid_tables())
    write_case(tmp_path / "b", valid_documents(), valid_tables())
    turned, straight = (load_case(tmp_path / name).scenarios.correlation for name in "ab")
    assert same(turned, straight)
