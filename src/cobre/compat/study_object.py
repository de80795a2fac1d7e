"""`cobre.Study`: a case with the directory of its results, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cobre.comm import BackendConfig
from cobre.core.case import Case, ScenarioTables
from cobre.core.stopping import StoppingRule
from cobre.core.system_overview import System, system_of
from cobre.errors import SimulationError, SolverError, ValidationError
from cobre.io.case import check_folder, load_case
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, load_policy
from cobre.runs.files import OUTPUT
from cobre.runs.summary import RunSummary
from cobre.sddp.plugins.interfaces import CutSelection, RiskMeasure
from cobre.sddp.plugins.user_plugins import checked_plugins
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.iteration_callback import IterationCallback
from cobre.study.placement import WorldRequest
from cobre.study.preparation.prepare import prepare
from cobre.study.script_run import ScriptRun, simulate_and_store
from cobre.study.validation import validate_as_dict

# A study before it runs: its noise, its hydro models, and the sources of both, as plain values.

NOT_APPLICABLE = "n/a"


def study_facts(study: PreparedStudy) -> dict[str, Any]:
    """Return all facts, by the names of the result of `cobre.run.run`."""
    return {
        "stochastic": stochastic_summary(study),
        "hydro_models": hydro_models_summary(study),
        "provenance": provenance_report(study),
    }


def stochastic_summary(study: PreparedStudy) -> dict[str, Any]:
    """Describe sources and sizes of the noise. A source is loaded (from a file), estimated (or drawn), or None."""
    case, noise = study.case, study.noise
    has_hydros = bool(case.system.hydros)
    dimension = noise.layout.dimension
    return {
        "inflow_source": _inflow_source(case.scenarios) if has_hydros else None,
        "n_hydros": noise.num_hydros,
        "n_seasons": _seasons(case) if has_hydros else 0,
        "ar_order": _orders(study) if has_hydros else None,
        "correlation_source": _correlation_source(case.scenarios),
        "correlation_dim": f"{dimension}x{dimension}" if dimension else None,
        "opening_tree_source": _opening_source(case) if dimension else None,
        "openings_per_stage": [len(openings) for openings in noise.openings],
        "n_stages": noise.num_stages,
        "n_load_buses": len(noise.layout.bus_ids),
        "seed": case.config.training.tree_seed,
    }


def hydro_models_summary(study: PreparedStudy) -> dict[str, Any]:
    """Return plants by the model of their production in the first stage, and how many of them evaporate."""
    first = study.problem.stages[0].plan.data.hydro
    planes = [given for given in first.planes if given is not None]
    evaporating = sum(hydro.evaporation is not None for hydro in study.case.system.hydros)
    return {
        "n_constant": len(first.planes) - len(planes),
        "n_fpha": len(planes),
        "total_planes": sum(len(given) for given in planes),
        "n_evaporation": evaporating,
        "n_no_evaporation": len(first.planes) - evaporating,
    }


def provenance_report(study: PreparedStudy) -> dict[str, Any]:
    """Return which numbers came from files, and which were estimated from history or geometry."""
    case = study.case
    tables, estimation = case.scenarios, case.config.estimation
    is_fitted = tables.inflow_history is not None and tables.inflow_ar_coefficients is None
    correlation = _correlation_source(tables)
    return {
        "estimation_path": _estimation_path(tables),
        "seasonal_stats_source": "user_file" if tables.inflow_seasonal_stats is not None else _estimated(tables),
        "ar_coefficients_source": "user_file" if tables.inflow_ar_coefficients is not None else _estimated(tables),
        "correlation_source": NOT_APPLICABLE if correlation is None else "estimated",
        "opening_tree_source": _opening_source(case) if study.noise.layout.dimension else NOT_APPLICABLE,
        "n_hydros": len(case.system.hydros),
        "ar_method": estimation.order_selection if is_fitted else None,
        "ar_max_order": estimation.max_order if is_fitted else None,
        "white_noise_fallbacks": _without_memory(study) if is_fitted else [],
        "hydro_production": _hydro_production(study),
    }


def _inflow_source(tables: ScenarioTables) -> str | None:
    if tables.inflow_seasonal_stats is not None:
        return "loaded"
    return "estimated" if tables.inflow_history is not None else None


def _seasons(case: Case) -> int:
    """Return rows of statistics for each plant."""
    stats = case.scenarios.inflow_seasonal_stats
    if stats is not None:
        return len(np.unique(stats["stage_id"]))
    definitions = case.horizon.season_definitions
    return 0 if definitions is None else len(definitions.seasons)


def _orders(study: PreparedStudy) -> dict[str, Any]:
    """Return the number of inflow lags of each plant, in any stage."""
    remembers = (study.noise.ar_coefficients != 0.0).any(axis=0)
    orders = [int(np.flatnonzero(column)[-1]) + 1 if column.any() else 0 for column in remembers.T]
    tables = study.case.scenarios
    is_fitted = tables.inflow_history is not None and tables.inflow_ar_coefficients is None
    return {
        "method": study.case.config.estimation.order_selection if is_fitted else "fixed",
        "min_order": min(orders),
        "max_order": max(orders),
        "n_hydros": len(orders),
        "order_counts": np.bincount(orders).tolist(),
    }


def _without_memory(study: PreparedStudy) -> list[int]:
    has_memory = (study.noise.ar_coefficients != 0.0).any(axis=(0, 1))
    return [hydro.id for hydro, has in zip(study.case.system.hydros, has_memory, strict=True) if not has]


def _correlation_source(tables: ScenarioTables) -> str | None:
    if tables.correlation is not None:
        return "loaded"
    has_all = tables.inflow_seasonal_stats is not None and tables.inflow_ar_coefficients is not None
    return "estimated" if tables.inflow_history is not None and not has_all else None


def _opening_source(case: Case) -> str:
    return "loaded" if case.config.training.scenario_source.has_openings_file else "estimated"


def _estimated(tables: ScenarioTables) -> str:
    return "estimated" if tables.inflow_history is not None else NOT_APPLICABLE


def _estimation_path(tables: ScenarioTables) -> str:
    has_stats, has_terms = tables.inflow_seasonal_stats is not None, tables.inflow_ar_coefficients is not None
    if tables.inflow_history is not None:
        paths = {
            (True, True): "user_provided_all",
            (True, False): "partial_estimation",
            (False, True): "user_ar_history_stats",
            (False, False): "full_estimation",
        }
        return paths[has_stats, has_terms]
    if not has_stats:
        return "deterministic"
    return "user_provided_no_history" if has_terms else "user_stats_white_noise"


def _hydro_production(study: PreparedStudy) -> dict[str, int]:
    case = study.case
    first, production = case.horizon.stages[0], case.production
    configs = [production.choice_for(hydro, first).fpha_config for hydro in case.system.hydros]
    sources = [config.source for config in configs if config is not None]
    evaporations = [hydro.evaporation for hydro in case.system.hydros if hydro.evaporation is not None]
    own = sum(evaporation.reference_volumes_hm3 is not None for evaporation in evaporations)
    return {
        "n_fpha_computed_from_geometry": sources.count("computed"),
        "n_fpha_precomputed_hyperplanes": sources.count("precomputed"),
        "n_evaporation_ref_user_supplied": own,
        "n_evaporation_ref_default_midpoint": len(evaporations) - own,
    }


def script_run(
    case_dir: str | Path,
    output_dir: str | Path | None,
    config_overrides: Mapping[str, Any] | None,
    world: WorldRequest,
    *,
    overwrite: bool,
) -> ScriptRun:
    """Build what `Study` and `cobre.run.run` run. Raises CaseIoError where there is no such case."""
    check_folder(case_dir)
    output = Path(case_dir) / OUTPUT if output_dir is None else Path(output_dir)
    return ScriptRun(Path(case_dir), output, dict(config_overrides or {}), world, overwrite)


class Study:
    """A case and its output directory: `train`, `simulate` and `load_policy` read and write there, step by step.

    output_dir: None: CASE/output. threads, num_workers, backend, comm, config_overrides: as in `cobre.train`.
    risk_measure, stopping_rules, cut_selection, sampler: objects of your own, as in `cobre.train`. simulation_sampler:
    one that draws simulated scenarios, as in `cobre.simulate`.
    overwrite: an earlier run in the output directory may be replaced.

    Raises CaseIoError where there is no such case, and ValidationError for an invalid one.

    >>> study = cobre.Study("examples/two_reservoirs", "results")
    >>> policy = study.train()
    >>> study.simulate(policy)
    {'n_scenarios': 200, 'completed': 200}
    """

    def __init__(
        self,
        case_dir: str | Path,
        output_dir: str | Path | None = None,
        threads: int | None = None,
        config_overrides: Mapping[str, Any] | None = None,
        *,
        num_workers: int | None = None,
        backend: str | BackendConfig = "auto",
        comm: Any = None,
        overwrite: bool = False,
        risk_measure: RiskMeasure | None = None,
        stopping_rules: Sequence[StoppingRule] = (),
        cut_selection: CutSelection | None = None,
        sampler: Any = None,
        simulation_sampler: Any = None,
    ) -> None:
        world = WorldRequest(backend, num_workers, threads, comm)
        plugins = checked_plugins(risk_measure, stopping_rules, cut_selection, sampler, simulation_sampler)
        run = script_run(case_dir, output_dir, config_overrides, world, overwrite=overwrite)
        self._run = replace(run, plugins=plugins)
        self._case = load_case(case_dir, config_overrides)

    def __repr__(self) -> str:
        return f"<Study of {self._run.case}, results in {self._run.output}>"

    @property
    def output_dir(self) -> str:
        """The directory that results are written to."""
        return str(self._run.output)

    @property
    def case(self) -> Case:
        """The whole case, as `cobre.load_case` gives it."""
        return self._case

    @property
    def system(self) -> System:
        """Counts and entities of the case, in the shapes of cobre-python."""
        return system_of(self._case)

    @property
    def stochastic(self) -> dict[str, Any]:
        """Sources and dimensions of the noise model."""
        return stochastic_summary(self._prepared)

    @property
    def hydro_models(self) -> dict[str, Any]:
        """Numbers of plants by production model, evaporation and the like."""
        return hydro_models_summary(self._prepared)

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the parts of the noise and hydro models come from: given in files, estimated, or computed."""
        return provenance_report(self._prepared)

    @property
    def facts(self) -> dict[str, Any]:
        """`stochastic`, `hydro_models` and `provenance`, as the result of `cobre.run.run` has them."""
        return study_facts(self._prepared)

    @cached_property
    def _prepared(self) -> PreparedStudy:
        return prepare(self._case)

    def validate(self) -> dict[str, Any]:
        """Return `valid`, `errors` and `warnings`, as `cobre.io.validate` does; files with errors make no study."""
        return validate_as_dict(self._run.case, self._run.overrides)

    def train(self, on_iteration: IterationCallback | None = None) -> Policy:
        """Train, and write the policy and the bounds to the output directory.

        on_iteration: called with a dictionary after each iteration; a true value ends training with the next one.
        """
        if not self._case.config.training.enabled:
            raise ValidationError("training.enabled is false in the configuration of this study: nothing to train")
        self._run.start({"simulation.enabled": False}, on_iteration)
        return self.load_policy()

    def run(self, on_iteration: IterationCallback | None = None) -> RunSummary:
        """Train and simulate as the configuration says; `train` and `simulate` do it in two steps."""
        return self._run.start({}, on_iteration)[0]

    def load_policy(self, output_dir: str | Path | None = None) -> Policy:
        """Load the policy that a run left in an output directory.

        Raises PolicyIncompatibleError for another study's.
        """
        folder = Path(output_dir or self._run.output) / self._case.config.policy.path
        policy = load_policy(folder)
        check_fit(policy, self._prepared)
        return policy

    def simulate(self, policy: Policy, output_dir: str | Path | None = None) -> dict[str, Any]:
        """Simulate as many scenarios as the case says, write the tables, and give `n_scenarios` and `completed`."""
        if not isinstance(policy, Policy):
            raise TypeError(f"expected a policy, as returned by train() or load_policy(), not {type(policy).__name__}")
        if not self._case.config.simulation.enabled:
            return {"n_scenarios": 0, "completed": 0}
        check_fit(policy, self._prepared)
        try:
            count = simulate_and_store(self._run, policy, Path(output_dir or self._run.output))
        except SolverError as error:
            raise SimulationError(str(error)) from error
        return {"n_scenarios": count, "completed": count}
