"""The variables of generic constraints, and the arguments of each."""

from collections.abc import Mapping
from typing import Literal

from cobre.records import dataclass

EntityClass = Literal["hydro", "thermal", "line", "bus", "pumping_station", "contract", "non_controllable_source"]


@dataclass(frozen=True, slots=True)
class VariableKind:
    """The class of the entity in the first argument, and whether a block and a bus may follow."""

    entity: EntityClass
    takes_block: bool = True
    takes_bus: bool = False
    is_storage_boundary: bool = False


_BOUNDARY = VariableKind("hydro", is_storage_boundary=True)

VARIABLES: Mapping[str, VariableKind] = {
    "hydro_storage": VariableKind("hydro", takes_block=False),
    "hydro_storage_initial": _BOUNDARY,
    "hydro_storage_final": _BOUNDARY,
    "hydro_useful_volume_initial": _BOUNDARY,
    "hydro_useful_volume_final": _BOUNDARY,
    "hydro_turbined": VariableKind("hydro", takes_bus=True),
    "hydro_spillage": VariableKind("hydro"),
    "hydro_diversion": VariableKind("hydro"),
    "hydro_outflow": VariableKind("hydro"),
    "hydro_generation": VariableKind("hydro", takes_bus=True),
    "hydro_evaporation": VariableKind("hydro"),
    "hydro_inflow": VariableKind("hydro"),
    "thermal_generation": VariableKind("thermal"),
    "anticipated_decision": VariableKind("thermal", takes_block=False),
    "line_direct": VariableKind("line"),
    "line_reverse": VariableKind("line"),
    "line_exchange": VariableKind("line"),
    "bus_deficit": VariableKind("bus"),
    "bus_excess": VariableKind("bus"),
    "pumping_flow": VariableKind("pumping_station"),
    "pumping_power": VariableKind("pumping_station"),
    "contract_import": VariableKind("contract"),
    "contract_export": VariableKind("contract"),
    "non_controllable_generation": VariableKind("non_controllable_source"),
    "non_controllable_curtailment": VariableKind("non_controllable_source"),
}
