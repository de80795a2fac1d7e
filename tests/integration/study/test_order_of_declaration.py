"""Results depend neither on the order of declarations in files and objects nor on the ids of entities."""

import random

import numpy as np
import pytest
from all_kinds_case import SOURCES, write_all_kinds
from shuffled_case import same, shuffled_case, write_shuffled

import cobre

# Not in the order of dates of operation, which is the canonical one.
IDS = (7, 2, 4)


@pytest.fixture(scope="module", params=SOURCES)
def source(request):
    return request.param


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory):
    return write_all_kinds(tmp_path_factory.mktemp(source) / "case", source, IDS)


@pytest.fixture(scope="module")
def reference(folder):
    return results(folder)


def results(case):
    """Return the digest of training, and all rows of a simulation."""
    trained = cobre.train(case, threads=1)
    simulated = cobre.simulate(case, trained.policy, threads=1)
    return trained.digest, {name: table.to_pydict() for name, table in simulated.tables.items()}


def test_loaded_case_equals_its_directory(folder, reference):
    assert results(cobre.load_case(folder)) == reference


@pytest.mark.parametrize("seed", [1, 2])
def test_order_in_memory_does_not_change_results(folder, reference, seed):
    assert results(shuffled_case(cobre.load_case(folder), random.Random(seed))) == reference


def test_order_in_files_does_not_change_results(folder, reference, tmp_path):
    assert results(write_shuffled(folder, tmp_path / "case", seed=3)) == reference


def test_saving_normalises_order(folder, tmp_path):
    case = cobre.load_case(folder)
    saved = cobre.save_case(shuffled_case(case, random.Random(4)), tmp_path / "case")
    assert same(cobre.load_case(saved), case)


def test_ids_do_not_change_results(source, reference, tmp_path):
    """With ids in canonical order, noise, limits and prices still apply to the same plants."""
    (tmp_path / "case").mkdir()
    _, tables = results(write_all_kinds(tmp_path / "case", source, (1, 2, 3)))
    for name, columns in reference[1].items():
        for column, values in columns.items():
            if column.endswith("_id"):
                continue
            if any(isinstance(value, str) for value in values):
                assert tables[name][column] == values, (name, column)
                continue
            found = np.array(tables[name][column], float)
            np.testing.assert_allclose(found, np.array(values, float), 1e-6, 1e-6, err_msg=f"{name}: {column}")


def test_validation_accepts_any_order(folder):
    report = cobre.validate(shuffled_case(cobre.load_case(folder), random.Random(6)))
    assert report, str(report)
    assert report.as_dict()["warnings"] == cobre.validate(folder).as_dict()["warnings"]
