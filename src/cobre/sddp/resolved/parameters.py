"""Values of the named numbers in generic constraints."""

from collections.abc import Callable, Iterable, Mapping

from cobre.core.case import Case
from cobre.core.generic_constraints import Coefficient, Parameter, names_in, total
from cobre.core.temporal import Stage
from cobre.core.units import MWH_PER_HM3
from cobre.errors import CobreError
from cobre.sddp.hydro_models.energy_productivity import EnergyProductivity
from cobre.sddp.hydro_models.geometry import geometry_by_hydro


class NotFiniteError(CobreError, ValueError):
    """A coefficient or bound of a generic constraint that is divided by 0; `divisor`: the parameters that make it."""

    def __init__(self, message: str, divisor: str) -> None:
        super().__init__(message, divisor)
        self.divisor = divisor

    def __str__(self) -> str:
        return str(self.args[0])


class ParameterValues:
    """A parameter's value in a stage, and in a block where it differs by block."""

    def __init__(self, case: Case) -> None:
        self._parameters = case.generic_constraints.parameters
        self._computed = _computations(case)

    def is_by_block(self, name: str) -> bool:
        """Whether the value differs by block."""
        parameter = self._parameters[name]
        if parameter.kind == "expression":
            return any(self.is_by_block(part) for part in names_in(parameter.expression))
        return parameter.kind == "per_stage_block"

    def divides(self, parts: Iterable[Coefficient]) -> bool:
        """Whether a sum has a divisor that is not a plain number, in itself or in a parameter that it names."""
        return any(
            part.divisors or any(self.divides(self._parameters[name].expression) for name in part.parameters)
            for part in parts
        )

    def value(self, name: str, stage: Stage, block: int | None) -> float:
        """The number; `block` None: the row is one of the stage."""
        parameter = self._parameters[name]
        if parameter.kind == "computed":
            assert parameter.computed_tag is not None and parameter.hydro_id is not None  # noqa: S101
            return self._computed[parameter.computed_tag](parameter.hydro_id, stage)
        if parameter.kind == "expression":
            return self.total(parameter.expression, stage, block)
        return parameter.values[_key(parameter, stage, block)]

    def total(self, parts: Iterable[Coefficient], stage: Stage, block: int | None) -> float:
        """The value of a sum of products. Raises NotFiniteError where something is divided by 0."""
        try:
            return total(parts, lambda name: self.value(name, stage, block))
        except ZeroDivisionError as error:
            message = f"a number of a generic constraint is divided by 0 in stage {stage.id}: by a sum with {error}"
            raise NotFiniteError(message, str(error)) from error

    def product(self, coefficient: Coefficient, stage: Stage, block: int | None) -> float:
        """As `total`, of one product."""
        return self.total((coefficient,), stage, block)


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
        "integrated_equivalent_productivity_mwh_per_hm3": _in_mwh(energy.integrated_equivalent),
        "integrated_accumulated_productivity_mwh_per_hm3": _in_mwh(energy.integrated_accumulated),
        "max_stored_energy_mwh": _in_mwh(energy.max_stored_energy),
    }


def _in_mwh(computed: Callable[[int, Stage], float]) -> Callable[[int, Stage], float]:
    """The same with volumes in hm3 turned into flows over hours."""
    return lambda hydro_id, stage: computed(hydro_id, stage) * MWH_PER_HM3
