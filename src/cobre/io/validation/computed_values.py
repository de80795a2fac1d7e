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


class _ComputedValues:
    """Which plants have productivities in which stages; a deck's parameters ask for the same plants again and again."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._specific = _tabulated(case, "specific_productivity_mw_per_m3s_per_m")
        self._equivalent = _tabulated(case, "equivalent_productivity_mw_per_m3s")
        geometry = case.production.geometry
        self._with_geometry = frozenset[int]() if geometry is None else frozenset(geometry["hydro_id"].tolist())
        self._missing: dict[tuple[int, bool], Stage | None] = {}

    def first_missing(self, hydro: Hydro, is_specific: bool) -> Stage | None:
        """The first stage without a (specific) productivity of the plant, None where all have one."""
        key = (hydro.id, is_specific)
        if key not in self._missing:
            has_value = self._has_specific if is_specific else self._has_productivity
            stages = self._case.horizon.stages
            self._missing[key] = next((stage for stage in stages if not has_value(hydro, stage)), None)
        return self._missing[key]

    def _has_specific(self, hydro: Hydro, stage: Stage) -> bool:
        if hydro.specific_productivity_mw_per_m3s_per_m is not None:
            return True
        return _is_among(self._specific, hydro, stage)

    def _has_productivity(self, hydro: Hydro, stage: Stage) -> bool:
        choice = self._case.production.choice_for(hydro, stage)
        if choice.model != "fpha" and choice.productivity_mw_per_m3s is not None:
            return True
        if _is_among(self._equivalent, hydro, stage):
            return True
        return hydro.id in self._with_geometry and self._has_specific(hydro, stage)


def check_computed_values(case: Case, problems: Problems) -> None:
    """Add an error for each value that cannot be computed. References must have been checked before."""
    for hydro in case.system.hydros:
        if any(_is_fitted(case, hydro, stage) for stage in case.horizon.stages):
            _check_fitting(hydro, problems)
    values = _ComputedValues(case)
    for parameter in case.generic_constraints.parameters.values():
        if parameter.kind == "computed":
            _check_parameter(case, parameter, values, problems)


def _is_fitted(case: Case, hydro: Hydro, stage: Stage) -> bool:
    choice = case.production.choice_for(hydro, stage)
    return choice.model == "fpha" and choice.fpha_config is not None and choice.fpha_config.source == "computed"


def _check_fitting(hydro: Hydro, problems: Problems) -> None:
    for name in FITTED_FROM:
        if getattr(hydro, name) is None:
            message = "is missing, but needed to compute the planes of the plant"
            entity = f"hydro {hydro.id} ({hydro.name})"
            problems.error(Layer.MEANING, HYDROS, entity, name, message, "give it, or precomputed planes")


def _check_parameter(case: Case, parameter: Parameter, values: _ComputedValues, problems: Problems) -> None:
    entity = f"parameter {parameter.id} ({parameter.name})"
    for hydro in _plants(case, parameter):
        missing = values.first_missing(hydro, parameter.computed_tag == "specific_productivity")
        if missing is not None:
            message = f"hydro {hydro.id} ({hydro.name}) has no {_needed(parameter)} in stage {missing.id}"
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


def _tabulated(case: Case, name: str) -> frozenset[tuple[int, int]]:
    """Plants and stages (ABSENT_ID: all stages) with a value in hydro_energy_productivity.parquet."""
    table = case.production.energy_productivity
    if table is None:
        return frozenset()
    rows = ~np.isnan(table[name])
    return frozenset(zip(table["hydro_id"][rows].tolist(), table["stage_id"][rows].tolist(), strict=True))


def _is_among(tabulated: frozenset[tuple[int, int]], hydro: Hydro, stage: Stage) -> bool:
    return (hydro.id, stage.id) in tabulated or (hydro.id, ABSENT_ID) in tabulated
