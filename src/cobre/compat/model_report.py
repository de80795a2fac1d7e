"""Summaries of the noise and hydro models of a study, with provenance, before it runs."""

from typing import Any

import numpy as np

from cobre.core.case import Case, ScenarioTables
from cobre.sddp.problem.problem import PreparedStudy

NOT_APPLICABLE = "n/a"


def model_report(study: PreparedStudy) -> dict[str, Any]:
    """Return all summaries, by their names in the result of `cobre.run.run`."""
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
    planes = [fitted for fitted in first.planes if fitted is not None]
    evaporating = sum(hydro.evaporation is not None for hydro in study.case.system.hydros)
    return {
        "n_constant": len(first.planes) - len(planes),
        "n_fpha": len(planes),
        "total_planes": sum(len(fitted) for fitted in planes),
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
    with_reference_volumes = sum(evaporation.reference_volumes_hm3 is not None for evaporation in evaporations)
    return {
        "n_fpha_computed_from_geometry": sources.count("computed"),
        "n_fpha_precomputed_hyperplanes": sources.count("precomputed"),
        "n_evaporation_ref_user_supplied": with_reference_volumes,
        "n_evaporation_ref_default_midpoint": len(evaporations) - with_reference_volumes,
    }
