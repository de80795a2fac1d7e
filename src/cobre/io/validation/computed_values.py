"""Checks that computed values have their data: planes from geometry, parameters from productivities."""

from collections.abc import Iterator

import numpy as np

from cobre.core.case import ABSENT_ID, Case
from cobre.core.generic_constraints import Parameter
from cobre.core.hydro import Hydro
from cobre.core.temporal import Stage
from cobre.io.findings.problems import Layer, Problems

HYDROS = "system/hydros.json"
PARAMETERS = "constraints/generic_parameters.json"
FITTED_FROM = ("tailrace", "hydraulic_losses", "efficiency")
OF_ONE_PLANT = ("equivalent_productivity", "integrated_equivalent_productivity")
OF_A_CASCADE = ("accumulated_productivity", "integrated_accumulated_productivity", "max_stored_energy")


def check_computed_values(case: Case, problems: Problems) -> None:
    """Add an error for each value that cannot be computed. References must have been checked before."""
    for hydro in case.system.hydros:
        if any(_is_fitted(case, hydro, stage) for stage in case.horizon.stages):
            _check_fitting(hydro, problems)
    for parameter in case.generic_constraints.parameters.values():
        if parameter.kind == "computed":
            _check_parameter(case, parameter, problems)


def _is_fitted(case: Case, hydro: Hydro, stage: Stage) -> bool:
    choice = case.production.choice_for(hydro, stage)
    return choice.model == "fpha" and choice.fpha_config is not None and choice.fpha_config.source == "computed"


def _check_fitting(hydro: Hydro, problems: Problems) -> None:
    for name in FITTED_FROM:
        if getattr(hydro, name) is None:
            message = "is missing, but needed to compute the planes of the plant"
            entity = f"hydro {hydro.id} ({hydro.name})"
            problems.error(Layer.MEANING, HYDROS, entity, name, message, "give it, or precomputed planes")


def _check_parameter(case: Case, parameter: Parameter, problems: Problems) -> None:
    entity = f"parameter {parameter.id} ({parameter.name})"
    for hydro in _plants(case, parameter):
        missing = [stage.id for stage in case.horizon.stages if not _has_value(case, parameter, hydro, stage)]
        if missing:
            message = f"hydro {hydro.id} ({hydro.name}) has no {_needed(parameter)} in stage {missing[0]}"
            remedy = f"a value in {HYDROS} or in system/hydro_energy_productivity.parquet"
            problems.error(Layer.MEANING, PARAMETERS, entity, "computed_spec", message, remedy)


def _needed(parameter: Parameter) -> str:
    is_specific = parameter.computed_tag == "specific_productivity"
    return "specific productivity" if is_specific else "productivity (given, or geometry and specific productivity)"


def _plants(case: Case, parameter: Parameter) -> Iterator[Hydro]:
    """Plants whose productivities a parameter is computed from."""
    hydros = {hydro.id: hydro for hydro in case.system.hydros}
    if parameter.computed_tag in (*OF_ONE_PLANT, "specific_productivity"):
        yield hydros[parameter.hydro_id or 0]
    at = parameter.hydro_id if parameter.computed_tag in OF_A_CASCADE else None
    while at is not None:
        yield hydros[at]
        at = hydros[at].downstream_id


def _has_value(case: Case, parameter: Parameter, hydro: Hydro, stage: Stage) -> bool:
    has_specific = hydro.specific_productivity_mw_per_m3s_per_m is not None
    has_specific = has_specific or _is_tabulated(case, "specific_productivity_mw_per_m3s_per_m", hydro, stage)
    if parameter.computed_tag == "specific_productivity":
        return has_specific
    choice = case.production.choice_for(hydro, stage)
    is_given = choice.model != "fpha" and choice.productivity_mw_per_m3s is not None
    is_given = is_given or _is_tabulated(case, "equivalent_productivity_mw_per_m3s", hydro, stage)
    return is_given or (has_specific and _has_geometry(case, hydro))


def _is_tabulated(case: Case, name: str, hydro: Hydro, stage: Stage) -> bool:
    table = case.production.energy_productivity
    if table is None:
        return False
    rows = (table["hydro_id"] == hydro.id) & np.isin(table["stage_id"], (stage.id, ABSENT_ID))
    return bool((~np.isnan(table[name][rows])).any())


def _has_geometry(case: Case, hydro: Hydro) -> bool:
    table = case.production.geometry
    return table is not None and bool((table["hydro_id"] == hydro.id).any())
