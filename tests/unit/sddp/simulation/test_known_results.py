"""Simulated decisions and prices of systems with one optimum, compared number by number with cobre-python 0.18.0.

Only columns with something in them are listed. Its water values have the other sign.
"""

import json
from pathlib import Path

import pytest
from known_systems import KNOWN
from solving import simulate_trained, train
from systems_network import contracts

EXPECTED = json.loads((Path(__file__).parent / "known_results.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_results(name, tmp_path):
    build, optimum = KNOWN[name]
    outcome, tables = simulate_trained(train(build(), tmp_path), 1)
    assert outcome.costs.tolist() == pytest.approx([optimum], rel=1e-8)
    for table, columns in EXPECTED[name].items():
        for column, expected in columns.items():
            actual = tables[table][column].tolist()
            assert actual == pytest.approx(expected, rel=1e-6, abs=1e-6), f"{table}.{column}"


def test_study_with_all_entities_has_all_tables(tmp_path):
    _, tables = simulate_trained(train(contracts(), tmp_path), 1)
    assert set(tables) == {"costs", "hydros", "hydro_bus_generation", "thermals", "buses", "contracts"}
