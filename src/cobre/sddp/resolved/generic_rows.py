"""Rows of generic constraints: where they act, with numbers for every coefficient and bound."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import ABSENT_ID, Case
from cobre.core.generic_constraints import Coefficient, GenericConstraint, Term, names_in
from cobre.core.stage_data import GenericRow, GenericTerm
from cobre.core.temporal import Stage
from cobre.sddp.resolved.declared import positions_by_id
from cobre.sddp.resolved.parameters import ParameterValues, UnusableNumberError, usable

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

    def of(self, stage: Stage) -> tuple[GenericRow, ...]:
        """The rows of a stage, in order of constraint and block."""
        if self._bounds is None:
            return ()
        rows = np.flatnonzero(self._bounds["stage_id"] == stage.id)
        return tuple(row for position in rows for row in self._rows(int(position), stage))

    def unusable_numbers(self, stage: Stage) -> Iterator[tuple[GenericConstraint, UnusableNumberError]]:
        """Constraints with a row that no LP can have in a stage: divided by 0, or with a number beyond 1e20."""
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
            yield self._row(constraint, stage, block, lower, upper)

    def _blocks(self, constraint: GenericConstraint, block_id: int, stage: Stage) -> Iterable[int | None]:
        """The block of the row; without one all blocks, or the stage when nothing in it differs by block."""
        if block_id != ABSENT_ID:
            return (block_id,)
        by_block = any(term.variable not in STAGE_VARIABLES for term in constraint.terms)
        by_block = by_block or any(self._parameters.is_by_block(name) for name in names_in(_coefficients(constraint)))
        return range(len(stage.blocks)) if by_block else (None,)

    def _row(
        self, constraint: GenericConstraint, stage: Stage, block: int | None, lower: float, upper: float
    ) -> GenericRow:
        low, high = self._limits(constraint, stage, block, lower, upper)
        terms = tuple(self._term(term, stage, block) for term in constraint.terms)
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
        """Limits from the table of bounds; to the side or sides of a relation they are added."""
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

    def _term(self, term: Term, stage: Stage, block: int | None) -> GenericTerm:
        row_block = None if term.variable in STAGE_VARIABLES else block
        return GenericTerm(
            variable=term.variable,
            entity=self._positions[_class_of(term.variable)][term.entity_id],
            block=row_block if term.block_id is None else term.block_id,
            bus=None if term.bus_id is None else self._positions["bus"][term.bus_id],
            coefficient=self._value(term.coefficient, stage, block),
        )

    def _sum(self, parts: tuple[Coefficient, ...], stage: Stage, block: int | None) -> float:
        return self._parameters.total(parts, stage, block)

    def _value(self, coefficient: Coefficient, stage: Stage, block: int | None) -> float:
        return self._parameters.product(coefficient, stage, block)


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
