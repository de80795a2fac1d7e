"""Settings of the LP solver that a study has, from its configuration."""

from pathlib import Path

import pytest

import cobre
from cobre.solver.simplex import SimplexOptions
from cobre.study.preparation.study_solver import solver_options

EXAMPLE = Path(__file__).parents[4] / "examples" / "two_reservoirs"
DEFAULT = SimplexOptions().highs_feasibility_tolerance


@pytest.mark.parametrize(
    ("tolerances", "used"),
    [
        ({}, DEFAULT),
        ({"primal_feasibility_tolerance": 1e-6}, DEFAULT),
        ({"dual_feasibility_tolerance": 1e-6}, DEFAULT),
        ({"primal_feasibility_tolerance": 1e-6, "dual_feasibility_tolerance": 1e-7}, 1e-7),
        ({"primal_feasibility_tolerance": 1e-10}, 1e-10),
    ],
)
def test_unset_tolerance_has_default(tolerances, used):
    """HiGHS gets one value for both: setting only one of them must not loosen the other."""
    case = cobre.load_case(EXAMPLE, {"training.solver.backward": tolerances})
    assert solver_options(case.config.training.solver).highs_feasibility_tolerance == used
