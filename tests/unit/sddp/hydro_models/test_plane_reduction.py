"""Merged neighbouring planes equal those of cobre-python 0.18.0 for the same plant."""

from dataclasses import replace

import numpy as np
import pytest
from plants import HYDRO

from cobre.core.hydro import FphaConfig, HydraulicLosses, PlaneReduction, Tailrace
from cobre.sddp.hydro_models.fpha_fitting import Region, angle_deg, distance_pct, fit_production, reduce_planes
from cobre.sddp.hydro_models.production_function import ProductionFunction
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry

VOLUMES = np.array([0.0, 50.0, 100.0, 150.0, 200.0])
GEOMETRY = ReservoirGeometry(VOLUMES, 20.0 + 60.0 * np.sqrt(VOLUMES / 200.0), 1.0 + VOLUMES / 100.0)
PLANT = replace(
    HYDRO,
    tailrace=Tailrace("polynomial", coefficients=(3.0, 0.02, 1e-4)),
    hydraulic_losses=HydraulicLosses("factor", value=0.02),
)
COMPUTED = FphaConfig("computed")


def by_angle(degrees):
    return PlaneReduction("angle", tolerance_deg=degrees)


def by_distance(percent):
    return PlaneReduction("distance", tolerance_pct=percent, n_samples=100)


KNOWN = [
    (
        by_angle(0.5),
        [
            [0.331017074, 0.252132905, 0.127005158, -0.017689392],
            [0.031290171, 0.246533611, 0.13859899, -0.017689392],
            [0.0, 0.104777943, 0.280980462, -0.017689392],
            [0.0, 0.080398943, 0.329738461, -0.017689392],
            [0.0, 0.067779445, 0.367596957, -0.017689392],
            [0.0, 0.000983994, 0.637463128, -0.011401366],
            [0.0, 0.0, 0.647014865, -0.003593158],
        ],
    ),
    (
        by_angle(3),
        [
            [0.098399354, 0.247464082, 0.136326335, -0.017689392],
            [0.0, 0.092588443, 0.305359461, -0.017689392],
            [0.0, 0.067779445, 0.367596957, -0.017689392],
            [0.0, 0.000983994, 0.637463128, -0.011401366],
            [0.0, 0.0, 0.647014865, -0.003593158],
        ],
    ),
    (by_angle(45), [[0.00153749, 0.012952376, 0.598559669, -0.011401366], [0.0, 0.0, 0.647014865, -0.003593158]]),
    (
        by_distance(0.01),
        [
            [0.331017074, 0.252132905, 0.127005158, -0.017689392],
            [0.062580342, 0.248411022, 0.136095776, -0.017689392],
            [0.0, 0.244656201, 0.141102203, -0.017689392],
            [0.0, 0.104777943, 0.280980462, -0.017689392],
            [0.0, 0.080398943, 0.329738461, -0.017689392],
            [0.0, 0.067779445, 0.367596957, -0.017689392],
            [0.0, 0.000983994, 0.637463128, -0.011401366],
            [0.0, 0.0, 0.647014865, -0.003593158],
        ],
    ),
    (
        by_distance(0.1),
        [
            [0.098399354, 0.247464082, 0.136326335, -0.017689392],
            [0.0, 0.104777943, 0.280980462, -0.017689392],
            [0.0, 0.074089194, 0.348667709, -0.017689392],
            [0.0, 0.000983994, 0.637463128, -0.011401366],
            [0.0, 0.0, 0.647014865, -0.003593158],
        ],
    ),
    (
        by_distance(1),
        [
            [0.098399354, 0.247464082, 0.136326335, -0.017689392],
            [0.0, 0.080183944, 0.336478209, -0.017689392],
            [0.0, 0.000983994, 0.637463128, -0.011401366],
            [0.0, 0.0, 0.647014865, -0.003593158],
        ],
    ),
    (
        by_distance(10),
        [
            [0.098399354, 0.247464082, 0.136326335, -0.017689392],
            [0.0, 0.010722905, 0.60081989, -0.011401366],
            [0.0, 0.0, 0.647014865, -0.003593158],
        ],
    ),
]


@pytest.mark.parametrize(("reduction", "planes"), KNOWN)
def test_kept_planes_equal_those_of_cobre_python(reduction, planes):
    facet_planes = fit_production(ProductionFunction(PLANT, GEOMETRY), COMPUTED, reduction).planes
    assert facet_planes == pytest.approx(np.array(planes), abs=2e-9)


def test_no_tolerance_keeps_all_planes():
    every = fit_production(ProductionFunction(PLANT, GEOMETRY), COMPUTED).planes
    assert len(every) == 11
    for reduction in (by_angle(0.0), by_distance(0.0)):
        assert np.array_equal(fit_production(ProductionFunction(PLANT, GEOMETRY), COMPUTED, reduction).planes, every)


def test_no_power_without_flow_survives_any_tolerance():
    planes = fit_production(ProductionFunction(PLANT, GEOMETRY), COMPUTED, by_angle(90.0)).planes
    at_rest = (planes[:, 0:1] + planes[:, 1:2] * VOLUMES).min(axis=0)
    assert len(planes) == 2
    assert at_rest.max() == 0.0


def test_merged_plane_is_compared_with_next_plane():
    """Steps of one degree: the first two merge, their mean is 1.5 degrees from the third."""
    slopes = np.tan(np.radians([10.0, 11.0, 12.0]))
    planes = np.column_stack([np.ones(3), np.ones(3) * 0.0, slopes, np.zeros(3)])
    merged = reduce_planes(planes, by_angle(1.2), Region(0.0, 1.0, 1.0, 1.0))
    assert merged[:, 2] == pytest.approx([(slopes[0] + slopes[1]) / 2, slopes[2]])


def test_angle_and_distance_of_given_planes():
    flat, steep = np.array([0.0, 0.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0, 0.0])
    assert angle_deg(flat, steep) == pytest.approx(45.0)
    region = Region(0.0, 3.0, 5.0, 2.0)
    # The mean of the square of a number between 0 and 3 is 3, and the most power is 2.
    assert distance_pct(flat, steep, region, 4096) == pytest.approx(100.0 * 3.0 / 4.0, rel=2e-3)
