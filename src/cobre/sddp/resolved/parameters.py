"""Values of the named numbers in generic constraints."""

import math
from collections.abc import Callable, Iterable, Mapping

from cobre.core.case import Case
from cobre.core.generic_constraints import Coefficient, Parameter, names_in, total
from cobre.core.temporal import Stage
from cobre.core.units import MWH_PER_HM3
from cobre.errors import CobreError
from cobre.sddp.hydro_models.energy_productivity import EnergyProductivity
from cobre.sddp.hydro_models.geometry import geometry_by_hydro

MAX_NUMBER = 1e20  # of a coefficient or bound, as of every number in a file; solvers take more for infinite
_LARGE_COMPUTED = 1e10  # of a parameter computed from the system; beyond it a number is looked at more closely


class UnusableNumberError(CobreError, ValueError):
    """A coefficient or bound of a generic constraint that no LP can have in a stage.

    what: what is wrong with it. cause: the parameters of a divisor that is 0, or the number that is too large.
    """

    def __init__(self, what: str, cause: str, remedy: str, stage: Stage) -> None:
        super().__init__(what, cause, remedy, stage.id)
        self.what, self.cause, self.remedy = what, cause, remedy

    def __str__(self) -> str:
        return f"generic constraints: {self.what} in stage {self.args[-1]}: {self.cause} ({self.remedy})"


def usable(number: float, stage: Stage) -> float:
    """Return a number of at most 1e20; raise UnusableNumberError for others."""
    if abs(number) <= MAX_NUMBER:
        return number
    remedy = "smaller numbers, or other units"
    raise UnusableNumberError(f"a coefficient or bound is beyond {MAX_NUMBER:g}", f"{number:g}", remedy, stage)


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

    def may_be_unusable(self, parts: Iterable[Coefficient]) -> bool:
        """Whether a number could be divided by 0 or beyond 1e20 in some stage; False is certain."""
        parts = tuple(parts)
        return self.divides(parts) or not self._most(parts) <= MAX_NUMBER

    def _most(self, parts: Iterable[Coefficient]) -> float:
        """Bound the size of a sum without divisors in all stages."""
        sizes = (
            abs(part.factor) * math.prod(self._most_of(self._parameters[name]) for name in part.parameters)
            for part in parts
        )
        return sum(sizes)

    def _most_of(self, parameter: Parameter) -> float:
        if parameter.kind == "computed":
            return _LARGE_COMPUTED
        if parameter.kind == "expression":
            return self._most(parameter.expression)
        return max(map(abs, parameter.values.values()), default=0.0)

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
        """The value of a sum of products. Raises UnusableNumberError for a division by 0 and beyond 1e20."""
        try:
            return usable(total(parts, lambda name: self.value(name, stage, block)), stage)
        except ZeroDivisionError as error:
            remedy = "other values of these parameters, or no row of bounds for these stages"
            by = f"by a sum with {error}"
            raise UnusableNumberError("something is divided by 0", by, remedy, stage) from error

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
