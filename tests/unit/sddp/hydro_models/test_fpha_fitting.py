"""Planes fitted to the production function equal those of cobre-python 0.18.0."""

from dataclasses import replace

import numpy as np
import pytest
from plants import GEOMETRY, HYDRO

from cobre.core.hydro import FittingWindow, FphaConfig, HydraulicLosses, Tailrace, TailracePoint
from cobre.sddp.hydro_models.fpha_fitting import fit_production
from cobre.sddp.hydro_models.production_function import ProductionFunction
from cobre.sddp.hydro_models.reservoir import ReservoirGeometry

COMPUTED = FphaConfig("computed")
POINTS = tuple(TailracePoint(*point) for point in ((0.0, 250.0), (40.0, 252.0), (90.0, 257.0)))


def fit_planes(hydro, geometry, config):
    return fit_production(ProductionFunction(hydro, geometry), config).planes


def test_planes_of_a_quadratic_tailrace():
    assert fit_planes(HYDRO, GEOMETRY, COMPUTED) == pytest.approx(
        np.array(
            [
                [1.0745340949, 0.1698029187, 0.3775461771, -0.0393949980],
                [0.4974694884, 0.1659558213, 0.3929345666, -0.0393949980],
                [0.1525573098, 0.1590575778, 0.4067310537, -0.0393949980],
                [0.0, 0.1499041392, 0.4189356385, -0.0393949980],
                [0.0, 0.1091590192, 0.4596807585, -0.0393949980],
                [0.0, 0.0818692644, 0.5142602681, -0.0393949980],
                [0.0, 0.0636760945, 0.5688397777, -0.0393949980],
                [0.0, 0.0053726705, 0.8020534738, -0.0393949980],
                [0.0, 0.0024873474, 0.8174418633, -0.0279047903],
                [0.0, 0.0007627865, 0.8312383505, -0.0175088880],
                [0.0, 0.0, 0.8434429353, -0.0082072913],
            ]
        ),
        abs=1e-9,
    )


def test_spillage_slopes_of_a_tailrace_of_pieces():
    """Beyond its last point the level stays, so that the slope is a fit and not a tangent."""
    hydro = replace(HYDRO, tailrace=Tailrace("piecewise", points=POINTS))
    planes = fit_planes(hydro, GEOMETRY, COMPUTED)
    assert sorted(set(np.round(planes[:, 3], 7))) == [-0.01729, -0.0160498, -0.0142624, -0.0080249]


def test_power_of_the_exact_function():
    function = ProductionFunction(HYDRO, GEOMETRY)
    assert function.power_mw(0.0, 12.5) == pytest.approx(5.3997137016)
    assert function.power_mw(100.0, 37.5) == pytest.approx(26.4934292725)
    assert function.power_mw(200.0, 50.0, 1e6) == 0.0


def test_minimum_of_planes_fits_on_average():
    planes = fit_planes(HYDRO, GEOMETRY, COMPUTED)
    function = ProductionFunction(HYDRO, GEOMETRY)
    pairs = [(v, q) for v in np.linspace(0, 200, 5) for q in np.linspace(0, 50, 5)]
    exact = np.array([function.power_mw(v, q) for v, q in pairs])
    fitted = np.array([(planes[:, 0] + planes[:, 1] * v + planes[:, 2] * q).min() for v, q in pairs])
    assert abs(np.sum(fitted * (exact - fitted))) < 1e-9  # least squares: what is left is orthogonal to the fit


def test_constant_losses_without_tailrace_slope():
    hydro = replace(
        HYDRO,
        tailrace=Tailrace("polynomial", coefficients=(250.0,)),
        hydraulic_losses=HydraulicLosses("constant", value_m=2.0),
    )
    assert (fit_planes(hydro, GEOMETRY, COMPUTED)[:, 3] == 0.0).all()


def test_window_limits_the_grid_and_the_geometry_limits_the_window():
    inside = fit_planes(HYDRO, GEOMETRY, replace(COMPUTED, fitting_window=FittingWindow(40.0, 160.0)))
    by_share = fit_planes(
        HYDRO,
        GEOMETRY,
        replace(COMPUTED, fitting_window=FittingWindow(volume_min_percentile=0.2, volume_max_percentile=0.8)),
    )
    assert inside == pytest.approx(by_share)
    beyond = fit_planes(HYDRO, GEOMETRY, replace(COMPUTED, fitting_window=FittingWindow(-10.0, 500.0)))
    assert beyond == pytest.approx(fit_planes(HYDRO, GEOMETRY, COMPUTED))


def test_planes_of_fixed_reservoir_do_not_depend_on_volume():
    geometry = ReservoirGeometry(np.array([20.0]), np.array([300.0]), np.array([1.0]))
    planes = fit_planes(HYDRO, geometry, COMPUTED)
    assert len(planes) == 4
    assert (planes[:, 1] == 0.0).all()


@pytest.mark.parametrize(
    ("window", "volumes"),
    [
        (FittingWindow(90.0, 90.0), [89.0, 91.0]),
        (FittingWindow(200.0, 200.0), [199.0, 200.0]),
        (FittingWindow(0.0, 0.0), [0.0, 1.0]),
        (FittingWindow(300.0, 400.0), [199.0, 200.0]),
        (FittingWindow(-5.0, -5.0), [0.0, 1.0]),
        (FittingWindow(volume_min_percentile=0.5, volume_max_percentile=0.5), [99.0, 101.0]),
        (FittingWindow(50.0, 50.0 + 1e-10), [49.0, 51.0]),
        (FittingWindow(50.0, 50.0 + 1e-8), list(np.linspace(50.0, 50.0 + 1e-8, 5))),
    ],
)
def test_single_volume_window_is_widened_within_geometry(window, volumes):
    """The grid of cobre-python 0.18.0 for the same windows."""
    fit = fit_production(ProductionFunction(HYDRO, GEOMETRY), replace(COMPUTED, fitting_window=window))
    assert sorted(set(fit.volume_hm3)) == pytest.approx(volumes, abs=1e-9)
    assert len(set(fit.volume_hm3)) == len(volumes)


@pytest.mark.parametrize(("mean_m3s", "max_spilled_m3s"), [(None, 100.0), (-1.0, 100.0), (30.0, 60.0)])
def test_spilled_flows_go_up_to_twice_the_mean_inflow(mean_m3s, max_spilled_m3s):
    """Without a mean above 0, up to twice the capacity. The best line of a quadratic tailrace is its secant."""
    function = ProductionFunction(HYDRO, GEOMETRY, mean_inflow_m3s=mean_m3s)
    slope_m = 0.05 + 0.0002 * (2 * 50.0 + max_spilled_m3s)
    expected = -9.81e-3 * 0.92 * 0.97 * 50.0 * slope_m
    assert fit_production(function, COMPUTED).planes[0, 3] == pytest.approx(expected, rel=1e-12)


def test_number_of_planes_depends_on_the_grid_and_not_on_the_limit():
    config = replace(
        COMPUTED, volume_discretization_points=15, turbine_discretization_points=12, max_planes_per_hydro=3
    )
    planes = fit_planes(HYDRO, GEOMETRY, config)
    assert len(planes) == 26
    assert (planes[:, 1] >= 0).all()
    assert (planes[:, 3] <= 0).all()


def test_function_is_capped_at_maximum_generation():
    plant = replace(HYDRO, generation=replace(HYDRO.generation, max_generation_mw=30.0))
    planes = fit_planes(plant, GEOMETRY, COMPUTED)
    exact = ProductionFunction(plant, GEOMETRY)
    most = (planes[:, 0] + planes[:, 1] * 200.0 + planes[:, 2] * 50.0).min()
    assert exact.power_mw(200.0, 50.0) > 42.0
    assert most < 31.0
