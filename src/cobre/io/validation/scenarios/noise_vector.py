"""The layout of the noise vector: hydros, buses with random load, sources with statistics."""

import numpy as np

from cobre.core.case import Case


def random_buses(case: Case) -> tuple[int, ...]:
    """Ids of buses whose load has a standard deviation in some stage of the study, in canonical order."""
    table = case.scenarios.load_seasonal_stats
    if table is None:
        return ()
    is_studied = np.isin(table["stage_id"], [stage.id for stage in case.horizon.stages])
    random = set(np.unique(table["bus_id"][is_studied & (table["std_mw"] > 0)]).tolist())
    return tuple(bus.id for bus in case.system.buses if bus.id in random)


def random_sources(case: Case) -> tuple[int, ...]:
    """Ids of sources that have statistics, in canonical order."""
    table = case.scenarios.non_controllable_stats
    if table is None:
        return ()
    random = set(np.unique(table["ncs_id"]).tolist())
    return tuple(source.id for source in case.system.non_controllable_sources if source.id in random)


def noise_dimension(case: Case) -> int:
    """Numbers in one opening of one stage."""
    return len(case.system.hydros) + len(random_buses(case)) + len(random_sources(case))
