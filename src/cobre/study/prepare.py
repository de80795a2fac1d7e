"""From a case to a problem that can be trained or simulated."""

from dataclasses import dataclass

import numpy as np

from cobre.core.case import Case
from cobre.core.config import ExportsConfig
from cobre.io.problems import Layer, Problems
from cobre.sddp.lp.failure import EntityNames
from cobre.sddp.lp.plan import PlanOptions
from cobre.sddp.problem import Problem, build_problem
from cobre.sddp.resolved.resolve import resolve
from cobre.solver.batches import LpSolver
from cobre.solver.highs import HighsOptions, HighsSolver
from cobre.stochastic.model import NoiseModel, build_noise_model


@dataclass(frozen=True, slots=True)
class PreparedStudy:
    """A case with its noise and its LPs."""

    case: Case
    noise: NoiseModel
    problem: Problem


def prepare(case: Case) -> PreparedStudy:
    """Resolve all cascades, draw the opening tree, build the LPs."""
    refuse_what_is_missing(case)
    noise = build_noise_model(case)
    modeling = case.config.modeling
    method = modeling.inflow_non_negativity
    options = PlanOptions(
        has_inflow_slack=method in ("penalty", "truncation_with_penalty"),
        truncates_inflow=method in ("truncation", "truncation_with_penalty"),
        cost_scale=modeling.cost_scale_factor,
    )
    consumption = np.array([station.consumption_mw_per_m3s for station in case.system.pumping_stations])
    names = EntityNames(tuple(f"{hydro.name} (hydro {hydro.id})" for hydro in case.system.hydros))
    return PreparedStudy(case, noise, build_problem(resolve(case), noise, options, consumption, names))


def refuse_what_is_missing(case: Case) -> None:
    """Settings that are read and checked, but that no code honours yet, are errors: nothing is ignored."""
    config, problems = case.config, Problems()
    missing = {
        "policy.boundary": config.policy.boundary is not None,
        "exports": config.exports != ExportsConfig(),
    }
    for field, is_asked_for in missing.items():
        if is_asked_for:
            problems.error(Layer.MEANING, "config.json", "", field, "is not supported yet", "leave it out")
    problems.raise_errors(case.name)


def make_solver(study: PreparedStudy, threads: int) -> LpSolver:
    """A solver that knows all stages."""
    config = study.case.config.training.solver
    defaults = HighsOptions()
    options = HighsOptions(
        feasibility_tolerance=config.primal_feasibility_tolerance or defaults.feasibility_tolerance,
        retry_attempts=config.retry_max_attempts,
    )
    solver = HighsSolver(threads, options)
    for number, stage in enumerate(study.problem.stages):
        solver.load(number, stage.program)
    return solver
