"""Who is connected with whom, as indices."""

from collections.abc import Mapping

import numpy as np

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.hydro import Hydro, UnitGroup
from cobre.core.stage_data import Topology
from cobre.sddp.resolved.declared import indices, positions_by_id

NO_PLANT = -1


def find_topology(case: Case) -> Topology:
    """All connections; ids become positions in canonical order."""
    system = case.system
    hydros = positions_by_id(hydro.id for hydro in system.hydros)
    buses = positions_by_id(bus.id for bus in system.buses)
    groups = [(hydro, group) for hydro in system.hydros for group in hydro.unit_groups]
    stations, contracts = system.pumping_stations, system.energy_contracts
    return Topology(
        downstream=indices(system.hydros, lambda hydro: _position(hydros, hydro.downstream_id)),
        diversion_target=indices(
            system.hydros, lambda hydro: _position(hydros, hydro.diversion.downstream_id if hydro.diversion else None)
        ),
        group_hydro=indices(groups, lambda pair: hydros[pair[0].id]),
        group_bus=indices(groups, lambda pair: buses[pair[1].bus_id]),
        group_share=np.array([_share(hydro, group) for hydro, group in groups], dtype=np.float64),
        thermal_bus=indices(system.thermals, lambda plant: buses[plant.bus_id]),
        line_source=indices(system.lines, lambda line: buses[line.source_bus_id]),
        line_target=indices(system.lines, lambda line: buses[line.target_bus_id]),
        source_bus=indices(system.non_controllable_sources, lambda source: buses[source.bus_id]),
        pumping_bus=indices(stations, lambda station: buses[station.bus_id]),
        pumping_source=indices(stations, lambda station: hydros[station.source_hydro_id]),
        pumping_destination=indices(stations, lambda station: hydros[station.destination_hydro_id]),
        contract_bus=indices(contracts, lambda contract: buses[contract.bus_id]),
        contract_sign=np.array([1.0 if contract.type == "import" else -1.0 for contract in contracts]),
    )


def _share(hydro: Hydro, group: UnitGroup) -> float:
    total = sum_in_order(each.max_turbined_m3s for each in hydro.unit_groups)
    return group.max_turbined_m3s / total if total > 0 else 1.0 / len(hydro.unit_groups)


def _position(positions: Mapping[int, int], entity_id: int | None) -> int:
    return NO_PLANT if entity_id is None else positions[entity_id]
