"""Families of tailrace curves; expected numbers are from cobre-python 0.18.0."""

import numpy as np
import pytest
from plants import GEOMETRY, HYDRO

from cobre.sddp.hydro_models.production_function import (
    IDEAL_MW_PER_M3S_M,
    ProductionFunction,
    net_head_m,
    tailrace_families,
)


def curves(*rows):
    """(family, segment, reference level, from, to, coefficients ...)"""
    table = {
        "hydro_id": np.zeros(len(rows), np.int32),
        "family_id": np.array([row[0] for row in rows], np.int32),
        "segment_id": np.array([row[1] for row in rows], np.int32),
    }
    for at, name in enumerate(("downstream_reference_level_m", "outflow_min_m3s", "outflow_max_m3s"), start=2):
        table[name] = np.array([row[at] for row in rows], np.float64)
    for power in range(5):
        values = [row[5 + power] if len(row) > 5 + power else 0.0 for row in rows]
        table[f"coefficient_{power}"] = np.array(values, np.float64)
    return tailrace_families(table)[0]


FLOWS = (25.0, 50.0, 75.0, 100.0, 125.0, 150.0)


def levels(curve):
    return [curve.level_m(flow) for flow in FLOWS]


def test_polynomial_of_degree_four():
    metres = levels(curves((1, 1, 50.0, 0.0, 1000.0, 10.0, 1e-2, 1e-4, 1e-6, 1e-8)).at(None))
    assert metres == pytest.approx([10.332031, 10.9375, 12.050781, 14.0, 17.207031, 22.1875], abs=1e-6)


def test_levels_stay_beyond_the_segments():
    metres = levels(curves((1, 1, 50.0, 40.0, 110.0, 10.0, 0.1, 0.001)).at(None))
    assert metres == pytest.approx([15.6, 17.5, 23.125, 30.0, 33.1, 33.1])


def test_segments_are_sorted():
    curve = curves((1, 2, 50.0, 50.0, 100.0, 15.0), (1, 1, 50.0, 0.0, 50.0, 10.0, 0.1)).at(None)
    assert [curve.level_m(flow) for flow in (0.0, 25.0, 50.0, 75.0, 500.0)] == [10.0, 12.5, 15.0, 15.0, 15.0]


@pytest.mark.parametrize(
    ("level", "expected"), [(None, 10.0), (40.0, 10.0), (52.0, 11.6), (56.5, 15.8), (60.0, 20.0), (70.0, 20.0)]
)
def test_level_downstream_chooses_between_families(level, expected):
    families = curves((3, 1, 60.0, 0.0, 1e3, 20.0), (1, 1, 50.0, 0.0, 1e3, 10.0), (2, 1, 55.0, 0.0, 1e3, 14.0))
    assert families.at(level).level_m(80.0) == pytest.approx(expected)


def test_segments_of_two_families_need_not_agree():
    metres = levels(curves((1, 1, 50.0, 0.0, 1e3, 10.0, 0.1), (2, 1, 60.0, 40.0, 110.0, 20.0, 0.1)).at(56.5))
    assert metres == pytest.approx([19.975, 21.5, 24.0, 26.5, 28.025, 28.9])


def test_plant_without_families_has_no_curve():
    assert tailrace_families(None) == {}


def test_power_falls_with_the_level_of_the_family():
    curve = curves((1, 1, 50.0, 0.0, 1000.0, 260.0, 0.02)).at(None)
    function = ProductionFunction(HYDRO, GEOMETRY, curve)
    head = net_head_m(HYDRO, 320.0 - (260.0 + 0.02 * 45.0))
    assert function.power_mw(50.0, 40.0, 5.0) == pytest.approx(IDEAL_MW_PER_M3S_M * 0.92 * 40.0 * head)
