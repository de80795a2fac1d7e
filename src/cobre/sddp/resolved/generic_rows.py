"""Rows of generic constraints: where they act, with numbers for every coefficient and bound."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from cobre.core.arrays import MWH_PER_HM3, sum_in_order
from cobre.core.case import ABSENT_ID, Case
from cobre.core.generic_constraints import Coefficient, GenericConstraint, Parameter, Term, names_in, total
from cobre.core.stage_data import GenericRow, GenericTerm
from cobre.core.temporal import Stage
from cobre.errors import CobreError
from cobre.limits import MAX_NUMBER
from cobre.sddp.hydro_models.energy_productivity import EnergyProductivity
from cobre.sddp.hydro_models.reservoir import geometry_by_hydro
from cobre.sddp.resolved.declared import positions_by_id

# Values of the named numbers in generic constraints.

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
    """A parameter's value in a stage, and in a block if it differs by block."""

    def __init__(self, case: Case) -> None:
        self._parameters = case.generic_constraints.parameters
        self._computed = _computations(case)

    def is_by_block(self, name: str) -> bool:
        """Return whether the value differs by block."""
        parameter = self._parameters[name]
        if parameter.kind == "expression":
            return any(self.is_by_block(part) for part in names_in(parameter.expression))
        return parameter.kind == "per_stage_block"

    def divides(self, parts: Iterable[Coefficient]) -> bool:
        """Return whether a sum has a divisor that is not a plain number, in itself or in a parameter that it names."""
        return any(
            part.divisors or any(self.divides(self._parameters[name].expression) for name in part.parameters)
            for part in parts
        )

    def may_be_unusable(self, parts: Iterable[Coefficient]) -> bool:
        """Return whether a number could be divided by 0 or beyond 1e20 in some stage; False is certain."""
        parts = tuple(parts)
        return self.divides(parts) or not self._size_bound(parts) <= MAX_NUMBER

    def _size_bound(self, parts: Iterable[Coefficient]) -> float:
        """Bound the size of a sum without divisors in all stages."""
        sizes = (
            abs(part.factor) * math.prod(self._parameter_bound(self._parameters[name]) for name in part.parameters)
            for part in parts
        )
        return sum(sizes)

    def _parameter_bound(self, parameter: Parameter) -> float:
        if parameter.kind == "computed":
            return _LARGE_COMPUTED
        if parameter.kind == "expression":
            return self._size_bound(parameter.expression)
        return max(map(abs, parameter.values.values()), default=0.0)

    def value(self, name: str, stage: Stage, block: int | None) -> float:
        """Return the value of a parameter; `block` None: the row is one of the stage."""
        parameter = self._parameters[name]
        if parameter.kind == "computed":
            assert parameter.computed_tag is not None and parameter.hydro_id is not None  # noqa: S101
            return self._computed[parameter.computed_tag](parameter.hydro_id, stage)
        if parameter.kind == "expression":
            return self.total(parameter.expression, stage, block)
        return parameter.values[_key(parameter, stage, block)]

    def total(self, parts: Iterable[Coefficient], stage: Stage, block: int | None) -> float:
        """Return the value of a sum of products. Raises UnusableNumberError for a division by 0 and beyond 1e20."""
        try:
            return usable(total(parts, lambda name: self.value(name, stage, block)), stage)
        except ZeroDivisionError as error:
            remedy = "other values of these parameters, or no row of bounds for these stages"
            by = f"by a sum with {error}"
            raise UnusableNumberError("something is divided by 0", by, remedy, stage) from error

    def product(self, coefficient: Coefficient, stage: Stage, block: int | None) -> float:
        """Return the value of one product, as `total` does."""
        return self.total((coefficient,), stage, block)


def _key(parameter: Parameter, stage: Stage, block: int | None) -> object:
    if parameter.kind == "constant":
        return None
    if parameter.kind == "per_stage":
        return stage.id
    return stage.season_id if parameter.kind == "seasonal" else (stage.id, block)


def _computations(case: Case) -> Mapping[str, Callable[[int, Stage], float]]:
    """Return by tag the number of a hydro in a stage. Volumes are the declared ones."""
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
    """Return the same computation with volumes in hm3 turned into flows over hours."""
    return lambda hydro_id, stage: computed(hydro_id, stage) * MWH_PER_HM3


# Volumes at the ends of a stage, and power for later stages. All else is of a block, or is as if it were: evaporation,
# inflow.
STAGE_VARIABLES = frozenset(
    {
        "hydro_storage",
        "hydro_storage_initial",
        "hydro_storage_final",
        "hydro_useful_volume_initial",
        "hydro_useful_volume_final",
        "anticipated_decision",
    }
)

# The class of a variable's entity, by the beginning of its name.
CLASSES = ("hydro", "thermal", "line", "bus", "pumping", "contract", "non_controllable")


class GenericRowResolver:
    """A constraint acts where the table of bounds has a row for it."""

    def __init__(self, case: Case) -> None:
        self._constraints = {constraint.id: constraint for constraint in case.generic_constraints.constraints}
        self._bounds = case.generic_constraints.bounds
        self._parameters = ParameterValues(case)
        self._positions = _positions(case)
        self._suspects = {
            constraint.id
            for constraint in self._constraints.values()
            if self._parameters.may_be_unusable(_coefficients(constraint))
        }
        self._dead_hm3 = [hydro.reservoir.min_storage_hm3 for hydro in case.system.hydros]
        # Rows by constraint, block, and the bits of limits and coefficients, which are the same in many stages.
        self._rows_by_numbers: dict[tuple[int, int | None, bytes], GenericRow] = {}
        # Rows of constraints without any parameter, by constraint, block and limits: stages share them.
        self._constant = {
            constraint.id
            for constraint in self._constraints.values()
            if next(names_in(_coefficients(constraint)), None) is None
        }
        self._constant_rows: dict[tuple[int, int | None, str, str], GenericRow] = {}

    def resolve(self, stage: Stage) -> tuple[GenericRow, ...]:
        """Return the rows of a stage, in order of constraint and block."""
        if self._bounds is None:
            return ()
        rows = np.flatnonzero(self._bounds["stage_id"] == stage.id)
        return tuple(row for position in rows for row in self._rows(int(position), stage))

    def unusable_numbers(self, stage: Stage) -> Iterator[tuple[GenericConstraint, UnusableNumberError]]:
        """Yield constraints with a row that no LP can have in a stage: divided by 0, or with a number beyond 1e20."""
        if self._bounds is None:
            return
        for position in np.flatnonzero(self._bounds["stage_id"] == stage.id):
            constraint = self._constraints[int(self._bounds["constraint_id"][position])]
            if constraint.id not in self._suspects:
                continue
            try:
                tuple(self._rows(int(position), stage))
            except UnusableNumberError as error:
                yield constraint, error

    def _rows(self, position: int, stage: Stage) -> Iterable[GenericRow]:
        bounds = self._bounds
        assert bounds is not None  # noqa: S101
        constraint = self._constraints[int(bounds["constraint_id"][position])]
        lower, upper = float(bounds["bound_lower"][position]), float(bounds["bound_upper"][position])
        for block in self._blocks(constraint, int(bounds["block_id"][position]), stage):
            if constraint.id not in self._constant:
                yield self._row(constraint, stage, block, lower, upper)
                continue
            key = constraint.id, block, repr(lower), repr(upper)
            if key not in self._constant_rows:
                self._constant_rows[key] = self._row(constraint, stage, block, lower, upper)
            yield self._constant_rows[key]

    def _blocks(self, constraint: GenericConstraint, block_id: int, stage: Stage) -> Iterable[int | None]:
        """Return the block of the row; without one all blocks, or the stage when nothing in it differs by block."""
        if block_id != ABSENT_ID:
            return (block_id,)
        by_block = any(term.variable not in STAGE_VARIABLES for term in constraint.terms)
        by_block = by_block or any(self._parameters.is_by_block(name) for name in names_in(_coefficients(constraint)))
        return range(len(stage.blocks)) if by_block else (None,)

    def _row(
        self, constraint: GenericConstraint, stage: Stage, block: int | None, lower: float, upper: float
    ) -> GenericRow:
        low, high = self._limits(constraint, stage, block, lower, upper)
        coefficients = [self._parameters.product(term.coefficient, stage, block) for term in constraint.terms]
        key = constraint.id, block, np.array([low, high, *coefficients]).tobytes()
        if key not in self._rows_by_numbers:
            self._rows_by_numbers[key] = self._new_row(constraint, stage, block, (low, high), coefficients)
        return self._rows_by_numbers[key]

    def _new_row(
        self,
        constraint: GenericConstraint,
        stage: Stage,
        block: int | None,
        limits: tuple[float, float],
        coefficients: Sequence[float],
    ) -> GenericRow:
        low, high = limits
        pairs = zip(constraint.terms, coefficients, strict=True)
        terms = tuple(self._term(term, block, coefficient) for term, coefficient in pairs)
        # Useful volumes leave out the dead volumes that the plants declare.
        useful = [term for term in terms if term.variable.startswith("hydro_useful_volume")]
        dead = sum_in_order(term.coefficient * self._dead_hm3[term.entity] for term in useful)
        return GenericRow(
            constraint_id=constraint.id,
            name=constraint.name,
            block=block,
            terms=terms,
            lower=low if low == -np.inf else usable(low + dead, stage),
            upper=high if high == np.inf else usable(high + dead, stage),
            slack_cost=constraint.slack_penalty if constraint.slack_enabled else None,
            slack_basis=constraint.slack_basis,
        )

    def _limits(
        self, constraint: GenericConstraint, stage: Stage, block: int | None, lower: float, upper: float
    ) -> tuple[float, float]:
        """Return limits from the table of bounds, added to the sides of the relation if there is one."""
        constant = self._sum(constraint.constant, stage, block)
        low = -np.inf if np.isnan(lower) else lower
        high = np.inf if np.isnan(upper) else upper
        if constraint.relation is None:
            return low - constant, high - constant
        bound = self._sum(constraint.bound, stage, block) - constant
        return (
            bound + np.nan_to_num(lower) if constraint.relation in (">=", "==") else low,
            bound + np.nan_to_num(upper) if constraint.relation in ("<=", "==") else high,
        )

    def _term(self, term: Term, block: int | None, coefficient: float) -> GenericTerm:
        row_block = None if term.variable in STAGE_VARIABLES else block
        return GenericTerm(
            variable=term.variable,
            entity=self._positions[_class_of(term.variable)][term.entity_id],
            block=row_block if term.block_id is None else term.block_id,
            bus=None if term.bus_id is None else self._positions["bus"][term.bus_id],
            coefficient=coefficient,
        )

    def _sum(self, parts: tuple[Coefficient, ...], stage: Stage, block: int | None) -> float:
        return self._parameters.total(parts, stage, block)


def _coefficients(constraint: GenericConstraint) -> list[Coefficient]:
    return [*(term.coefficient for term in constraint.terms), *constraint.constant, *constraint.bound]


def _class_of(variable: str) -> str:
    if variable == "anticipated_decision":
        return "thermal"
    return next(word for word in CLASSES if variable.startswith(word))


def _positions(case: Case) -> Mapping[str, Mapping[int, int]]:
    system = case.system
    return {
        "hydro": positions_by_id(hydro.id for hydro in system.hydros),
        "thermal": positions_by_id(plant.id for plant in system.thermals),
        "line": positions_by_id(line.id for line in system.lines),
        "bus": positions_by_id(bus.id for bus in system.buses),
        "pumping": positions_by_id(station.id for station in system.pumping_stations),
        "contract": positions_by_id(contract.id for contract in system.energy_contracts),
        "non_controllable": positions_by_id(source.id for source in system.non_controllable_sources),
    }
