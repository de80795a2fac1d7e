"""The LP solver of a study, separate from its preparation: a cached study needs only the solver."""

import os

from cobre.core.config import SolverConfig
from cobre.core.preparation_steps import PreparationStep, StepReporter, no_report, report_each
from cobre.errors import ValidationError
from cobre.sddp.problem.problem import PreparedStudy
from cobre.solver.batches import LpSolver
from cobre.solver.simplex import SimplexOptions, SimplexSolver

MAX_DENSE_ROWS_VARIABLE = "COBRE_MAX_DENSE_ROWS"


def max_dense_rows() -> int:
    """Return the largest number of rows solved with a dense inverse; an environment variable overrides it."""
    value = os.environ.get(MAX_DENSE_ROWS_VARIABLE)
    if value is None:
        return SimplexOptions().max_dense_rows
    if not value.isdecimal():
        raise ValidationError(f"{MAX_DENSE_ROWS_VARIABLE} is {value!r}: expected a whole number of rows, such as 100")
    return min(int(value), 2**31 - 1)


def solver_options(config: SolverConfig) -> SimplexOptions:
    """Return the options of the solver for the settings of a case.

    HiGHS gets one feasibility tolerance: the smaller of the primal and the dual one, each of which has its default
    where it is not set.
    """
    default = SimplexOptions().highs_feasibility_tolerance
    tolerances = (config.primal_feasibility_tolerance, config.dual_feasibility_tolerance)
    return SimplexOptions(
        highs_feasibility_tolerance=min(default if tolerance is None else tolerance for tolerance in tolerances),
        retry_attempts=config.retry_max_attempts,
        max_dense_rows=max_dense_rows(),
    )


def make_solver(study: PreparedStudy, threads: int, report: StepReporter = no_report) -> LpSolver:
    """Return a solver into which all stages of the study are loaded."""
    solver = SimplexSolver(threads, solver_options(study.case.config.training.solver))
    stages = study.problem.stages
    for number, stage in report_each(enumerate(stages), PreparationStep.LOADING, len(stages), report):
        solver.load(number, stage.program)
    return solver
