"""Tables of all hydro plants and all lines; thermal plants and buses have theirs under Generation."""

import math

import numpy as np

from cobre.core.arrays import Floats
from cobre.report.data_table import Cell, DataTable, TableColumn
from cobre.report.explorer_data import Explorer
from cobre.report.line_limits import congestion
from cobre.report.quantities import QUANTITIES
from cobre.report.study_facts import StudyFacts

HYDRO_COLUMNS = (
    TableColumn("plant"),
    TableColumn("bus"),
    TableColumn("flows to"),
    TableColumn("mean hm³", "number"),
    TableColumn("full", "percent"),
    TableColumn("mean MW", "number"),
    TableColumn("spilled m³/s", "number"),
    TableColumn("scenarios that spill", "percent"),
    TableColumn("water value, $/hm³", "number"),
    TableColumn("scenarios with violations", "percent"),
)
HYDRO_NOTE = (
    "Means over all stages and scenarios. Full is the mean position in the reservoir's range, from minimum to maximum "
    "storage. Violations are limits that were violated at a penalty: storage, filling, outflow, turbined flow, "
    "generation, evaporation, withdrawal, and negative inflows."
)
LINE_COLUMNS = (
    TableColumn("line"),
    TableColumn("from"),
    TableColumn("to"),
    TableColumn("mean MW", "number"),
    TableColumn("at the limit", "percent"),
    TableColumn("at the reverse limit", "percent"),
)
LINE_NOTE = (
    "Means over all stages and scenarios; negative flows run from the second bus to the first. Shares are of hours "
    "and scenarios."
)


def hydro_table(study: StudyFacts, explorer: Explorer) -> DataTable | None:
    """A row for each plant, in the order of the case."""
    if "storage" not in explorer.summaries:
        return None
    ids = explorer.simulated.rows("hydros", "hydro_id").entities
    violated = _violated(explorer, len(ids))
    rows = [
        (
            study.entity_name("hydros", id_),
            _buses(study, id_),
            _below(study, id_),
            _mean(explorer, "storage", index),
            _fullness(study, id_, _mean(explorer, "storage", index)),
            _mean(explorer, "hydro_generation", index),
            _mean(explorer, "spillage", index),
            float(explorer.summaries["spillage"].scenario_share[index]),
            _mean(explorer, "water_value", index),
            float(violated[index]),
        )
        for index, id_ in enumerate(ids)
    ]
    return DataTable("hydros", "Hydro plants", HYDRO_COLUMNS, rows, HYDRO_NOTE, is_wide=True, kind="hydros")


def line_table(study: StudyFacts, explorer: Explorer) -> DataTable | None:
    """A row for each line, in the order of the case."""
    if "line_flow" not in explorer.summaries:
        return None
    rows = explorer.simulated.rows("exchanges", "line_id")
    hours = explorer.simulated.hours(rows)
    shares = congestion(study, rows, hours)
    weights = hours.sum(axis=1) / hours.sum()
    found = [
        (
            study.entity_name("lines", id_),
            *(_bus(study, study.entity("lines", id_).get(end)) for end in ("source_bus_id", "target_bus_id")),
            _mean(explorer, "line_flow", index),
            *((None, None) if shares is None else (float(share @ weights) for share in shares[index])),
        )
        for index, id_ in enumerate(rows.entities)
    ]
    return DataTable("lines", "Lines", LINE_COLUMNS, found, LINE_NOTE, is_wide=True, kind="lines")


def _mean(explorer: Explorer, name: str, index: int) -> float | None:
    return float(explorer.summaries[name].mean[index]) if name in explorer.summaries else None


def _violated(explorer: Explorer, count: int) -> Floats:
    """By plant, the share of scenarios with a violation of any limit."""
    found = [
        explorer.summaries[name].happens
        for name, quantity in QUANTITIES.items()
        if quantity.is_violation and name in explorer.summaries
    ]
    return np.asarray(np.any(found, axis=0).mean(axis=0)) if found else np.zeros(count)


def _buses(study: StudyFacts, id_: int) -> Cell:
    buses = study.entity("hydros", id_).get("bus_ids")
    return ", ".join(str(_bus(study, bus)) for bus in buses) if isinstance(buses, list) else None


def _bus(study: StudyFacts, id_: object) -> Cell:
    return study.entity_name("buses", id_) if isinstance(id_, int) else None


def _below(study: StudyFacts, id_: int) -> Cell:
    below = study.entity("hydros", id_).get("downstream_id")
    return study.entity_name("hydros", below) if isinstance(below, int) else None


def _fullness(study: StudyFacts, id_: int, stored: float | None) -> float | None:
    """The mean position in the storage range, 0 to 1; None without storage, or if study.json lacks the range."""
    known = study.entity("hydros", id_)
    low, high = known.get("min_storage_hm3"), known.get("max_storage_hm3")
    if stored is None or not isinstance(low, int | float) or not isinstance(high, int | float) or high <= low:
        return None
    share = (stored - low) / (high - low)
    return share if math.isfinite(share) else None
