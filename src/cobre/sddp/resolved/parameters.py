"""Values of the named numbers in generic constraints."""

from collections.abc import Callable, Mapping

from cobre.core.case import Case
from cobre.core.generic_constraints import Parameter
from cobre.core.temporal import Stage
from cobre.sddp.hydro_models.energy_productivity import EnergyProductivity
from cobre.sddp.hydro_models.geometry import geometry_by_hydro


class ParameterValues:
    """A parameter's value in a stage, and in a block where it differs by block."""

    def __init__(self, case: Case) -> None:
        self._parameters = case.generic_constraints.parameters
        self._computed = _computations(case)

    def is_by_block(self, name: str) -> bool:
        """Whether the value differs by block."""
        return self._parameters[name].kind == "per_stage_block"

    def value(self, name: str, stage: Stage, block: int | None) -> float:
        """The number; `block` None: the row is one of the stage."""
        parameter = self._parameters[name]
        if parameter.kind == "computed":
            assert parameter.computed_tag is not None and parameter.hydro_id is not None  # noqa: S101
            return self._computed[parameter.computed_tag](parameter.hydro_id, stage)
        return parameter.values[_key(parameter, stage, block)]


def _key(parameter: Parameter, stage: Stage, block: int | None) -> object:
    if parameter.kind == "constant":
        return None
    if parameter.kind == "per_stage":
        return stage.id
    return stage.season_id if parameter.kind == "seasonal" else (stage.id, block)


def _computations(case: Case) -> Mapping[str, Callable[[int, Stage], float]]:
    """By tag: the number of a hydro in a stage. Volumes are the declared ones."""
    energy = EnergyProductivity(case, geometry_by_hydro(case.production.geometry))
    reservoirs = {hydro.id: hydro.reservoir for hydro in case.system.hydros}
    return {
        "equivalent_productivity": energy.equivalent,
        "accumulated_productivity": energy.accumulated,
        "specific_productivity": energy.specific,
        "reference_volume": energy.reference_volume_hm3,
        "reference_turbine": energy.reference_turbine_m3s,
        "min_storage": lambda hydro_id, _: reservoirs[hydro_id].min_storage_hm3,
        "max_storage": lambda hydro_id, _: reservoirs[hydro_id].max_storage_hm3,
        "integrated_equivalent_productivity": energy.integrated_equivalent,
        "integrated_accumulated_productivity": energy.integrated_accumulated,
        "max_stored_energy": energy.max_stored_energy,
    }
