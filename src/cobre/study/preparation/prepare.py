"""Preparation of a case: noise model, openings and stage LPs, ready to be trained or simulated."""

from dataclasses import replace

import numpy as np

from cobre.core.case import Case
from cobre.core.file_names import CONFIG_FILE
from cobre.core.preparation_steps import PreparationStep, StepReporter, no_report
from cobre.io.findings import lines_of
from cobre.policy.boundary import apply_boundary_policy, later_periods, load_boundary_policy, with_lags_of_boundary
from cobre.sddp.lp.failure import EntityNames
from cobre.sddp.lp.plan import PlanOptions
from cobre.sddp.problem.openings import StageOpenings, has_negative_memory
from cobre.sddp.problem.problem import PreparedStudy, Problem, build_problem
from cobre.sddp.problem.scenario_tree import build_tree
from cobre.sddp.resolved.resolve import resolve
from cobre.stochastic import NoiseNote
from cobre.stochastic.model import NoiseModel, build_noise_model
from cobre.study.plausibility.rules import finding_of_note, minimum_notes

TRUNCATING = ("truncation", "truncation_with_penalty")  # methods of modeling.inflow_non_negativity


def prepare(case: Case, report: StepReporter = no_report) -> PreparedStudy:
    """Fit the noise model, draw the openings and build the LPs; calls `report` at each step."""
    policy = load_boundary_policy(case)
    report(PreparationStep.INFLOWS, 0, 0)
    noise = with_lags_of_boundary(case, build_noise_model(case), policy)
    options = PlanOptions.of(case.config.modeling, case.format_version)
    consumption = np.array([station.consumption_mw_per_m3s for station in case.system.pumping_stations])
    names = EntityNames(tuple(f"{hydro.name} (hydro {hydro.id})" for hydro in case.system.hydros))
    resolved = resolve(case, [period.hours for period in later_periods(case, policy)], report)
    built = _with_tree(case, build_problem(resolved, noise, options, consumption, names, report))
    problem, boundary, boundary_notes = apply_boundary_policy(case, resolved, built, policy)
    notes = [*noise.notes, *convexity_notes(case, noise), *minimum_notes(case, resolved, problem.unreachable)]
    lines = lines_of(finding_of_note(note) for note in notes)  # equal notes on several plants share a line
    return PreparedStudy(case, noise, problem, boundary, (*lines, *boundary_notes))


def _with_tree(case: Case, problem: Problem) -> Problem:
    """Add the scenario tree to a problem that enumerates one; without one, nodes of a stage are alike."""
    if not (case.config.training.is_enumerated or case.config.simulation.is_enumerated):
        return problem
    tree = build_tree(case, problem.noise)
    return replace(problem, tree=tree, openings=tuple(map(StageOpenings.of, tree.realisations)))


def convexity_notes(case: Case, noise: NoiseModel) -> list[NoiseNote]:
    """Note that the lower bound may be invalid where inflows that depend on their past are truncated."""
    method = case.config.modeling.non_negativity_method
    if method not in TRUNCATING or not has_negative_memory(noise):
        return []
    text = (
        f"is {method}, and inflows that depend on their past are truncated at zero: the cost-to-go is not convex in "
        "past inflows, so the lower bound may be above the cost of the policy. With penalty it is a bound"
    )
    return [NoiseNote("lower-bound-not-valid", CONFIG_FILE, "modeling.inflow_non_negativity.method", text)]
