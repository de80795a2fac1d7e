"""Evaporation as a straight line."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from plants import HYDRO

from cobre.core.hydro import Evaporation, Reservoir
from cobre.core.temporal import Block, Stage
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry, evaporation_line

GEOMETRY = ReservoirGeometry(np.array([0.0, 100.0, 200.0]), np.zeros(3), np.array([0.5, 1.0, 2.5]))
LAKE = replace(HYDRO, reservoir=Reservoir(20.0, 120.0), evaporation=Evaporation(tuple(range(100, 112))))


def stage(start, end, hours=730.0):
    return Stage(0, date.fromisoformat(start), date.fromisoformat(end), (Block(0, "all", hours),))


def test_line_around_the_middle_of_the_reservoir():
    line = evaporation_line(LAKE, GEOMETRY, stage("2024-01-01", "2024-02-01"))
    assert line.kv == pytest.approx(100 * 0.005 / (3.6 * 744))
    assert line.k0 == pytest.approx(100 * 0.85 / (3.6 * 744) - line.kv * 70.0)


def test_month_and_hours_follow_the_calendar():
    """A week in February: its coefficient, and the hours of the whole month, whatever the blocks have."""
    line = evaporation_line(LAKE, GEOMETRY, stage("2024-02-05", "2024-02-12", hours=168.0))
    assert line.kv == pytest.approx(101 * 0.005 / (3.6 * 29 * 24))


def test_reference_volumes_and_the_piece_above_a_point():
    volumes = (100.0, *[50.0] * 11)
    lake = replace(LAKE, evaporation=Evaporation((100.0,) * 12, volumes))
    line = evaporation_line(lake, GEOMETRY, stage("2024-01-01", "2024-02-01"))
    assert line.kv == pytest.approx(100 * 0.015 / (3.6 * 744))
    assert line.k0 + line.kv * 100.0 == pytest.approx(100 * 1.0 / (3.6 * 744))


def test_evaporation_is_zero_without_coefficients_or_geometry():
    january = stage("2024-01-01", "2024-02-01")
    for line in (evaporation_line(HYDRO, GEOMETRY, january), evaporation_line(LAKE, None, january)):
        assert (line.k0, line.kv) == (0.0, 0.0)


def test_area_beyond_the_points():
    assert GEOMETRY.area_slope_at(500.0) == 0.015
    assert GEOMETRY.area_slope_at(-5.0) == 0.005
    assert GEOMETRY.area_at(500.0) == 2.5


def test_mean_height_between_volumes():
    geometry = ReservoirGeometry(
        np.array([0.0, 50.0, 120.0, 200.0]), np.array([300.0, 320.0, 338.0, 350.0]), np.zeros(4)
    )
    assert geometry.mean_height(10.0, 150.0) == pytest.approx(45717.5 / 140)
    assert geometry.mean_height(60.0, 60.0) == geometry.height_at(60.0)
