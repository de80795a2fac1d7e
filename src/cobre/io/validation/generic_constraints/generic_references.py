"""References of generic constraints: terms, buses of split plants, plants of computed parameters."""

from collections.abc import Mapping

from cobre.core.case import Case
from cobre.core.generic_constraints import GenericConstraint, Term
from cobre.io.constraints.parameters import FILE as PARAMETERS_FILE
from cobre.io.constraints.reading import FILE
from cobre.io.constraints.variables import VARIABLES, EntityClass
from cobre.io.validation.layer_findings import Findings, Rule, named
from cobre.io.validation.tables.case_tables import declared_ids

WORDS: dict[EntityClass, str] = {
    "hydro": "hydro",
    "thermal": "thermal",
    "line": "line",
    "bus": "bus",
    "pumping_station": "pumping station",
    "contract": "contract",
    "non_controllable_source": "non-controllable source",
}


def entity_of(constraint: GenericConstraint) -> str:
    """A constraint in messages, such as `constraint 3 (reserve)`."""
    return f"constraint {constraint.id} ({constraint.name})"


def entities_of_terms(case: Case, findings: Findings) -> None:
    """Each term names an entity of the class that its variable belongs to."""
    ids = declared_ids(case).by_class
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            word = WORDS[VARIABLES[term.variable].entity]
            field = f"expression, {term.variable}({term.entity_id})"
            findings.demand_known(ids[word], word, term.entity_id, FILE, entity_of(constraint), field)


def buses_of_terms(case: Case, findings: Findings) -> None:
    """`bus=` names a bus that one of the plant's unit groups feeds."""
    fed = {hydro.id: {group.bus_id for group in hydro.unit_groups} for hydro in case.system.hydros}
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            if term.bus_id is not None and term.entity_id in fed and term.bus_id not in fed[term.entity_id]:
                buses = ", ".join(str(bus) for bus in sorted(fed[term.entity_id]))
                field = f"expression, {term.variable}({term.entity_id}, bus={term.bus_id})"
                message = f"no unit group of hydro {term.entity_id} feeds bus {term.bus_id}"
                findings.error(FILE, entity_of(constraint), field, message, f"it feeds: {buses}")


def directions_of_contracts(case: Case, findings: Findings) -> None:
    """contract_import needs an import contract, contract_export an export contract."""
    types = {contract.id: contract.type for contract in case.system.energy_contracts}
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            _check_direction(term, types, entity_of(constraint), findings)


def _check_direction(term: Term, types: Mapping[int, str], entity: str, findings: Findings) -> None:
    wanted = {"contract_import": "import", "contract_export": "export"}.get(term.variable)
    found = types.get(term.entity_id)
    if wanted is not None and found is not None and found != wanted:
        field = f"expression, {term.variable}({term.entity_id})"
        findings.error(FILE, entity, field, f"contract {term.entity_id} is an {found}", f"write contract_{found}")


def plants_of_parameters(case: Case, findings: Findings) -> None:
    """Computed parameters name a plant that exists."""
    known = declared_ids(case).by_class["hydro"]
    for parameter in case.generic_constraints.parameters.values():
        entity, field = named("parameter", parameter), "computed_spec.hydro_id"
        findings.demand_known(known, "hydro", parameter.hydro_id, PARAMETERS_FILE, entity, field)


RULES: tuple[Rule, ...] = (entities_of_terms, buses_of_terms, directions_of_contracts, plants_of_parameters)
