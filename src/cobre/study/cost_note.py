"""The cost note: which penalties and deficits are most of the simulated cost, and where."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cobre.core.arrays import Floats, sum_in_order
from cobre.core.case import Case, System
from cobre.io.output.results import StoredRows
from cobre.io.storage.arrow_columns import numbers_of
from cobre.runs.labels import COST_COMPONENTS, ID_COLUMNS, NEGLIGIBLE, NOTABLE_PENALTY_SHARE
from cobre.text import percent

if TYPE_CHECKING:
    import pyarrow as pa


ReadColumns = Callable[[str, Sequence[str]], Iterable["pa.Table"]]

# Columns of the tables with the amounts of each penalty, which attribute it to plants or buses.
PENALTIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "deficit_cost": ("buses", ("deficit_mwh",)),
    "excess_cost": ("buses", ("excess_mwh",)),
    "storage_violation_cost": ("hydros", ("storage_violation_below_hm3",)),
    "filling_target_cost": ("hydros", ("filling_target_violation_hm3",)),
    "outflow_violation_below_cost": ("hydros", ("outflow_slack_below_m3s",)),
    "outflow_violation_above_cost": ("hydros", ("outflow_slack_above_m3s",)),
    "turbined_violation_cost": ("hydros", ("turbined_slack_m3s",)),
    "generation_violation_cost": ("hydros", ("generation_slack_mw",)),
    "evaporation_violation_cost": ("hydros", ("evaporation_violation_pos_m3s", "evaporation_violation_neg_m3s")),
    "withdrawal_violation_cost": (
        "hydros",
        ("water_withdrawal_violation_pos_m3s", "water_withdrawal_violation_neg_m3s"),
    ),
    "inflow_penalty_cost": ("hydros", ("inflow_nonnegativity_slack_m3s",)),
    "generic_violation_cost": ("", ()),
}


def cost_note(read: ReadColumns, case: Case | None = None) -> str | None:
    """Describe penalties and deficit if they are at least half of the simulated cost; None otherwise.

    read: returns columns of a table of the simulation, in pieces. case: for the names of plants and buses.
    """
    shares = _shares(read("costs", ["immediate_cost", "discount_factor", *PENALTIES]))
    total = sum_in_order(shares.values())
    if not total >= NOTABLE_PENALTY_SHARE:
        return None
    largest = max(shares, key=lambda name: shares[name])
    title = COST_COMPONENTS[largest]
    description = title[0].lower() + title[1:]
    table, amounts = PENALTIES[largest]
    where = ""
    if table:
        entity = ID_COLUMNS[table]
        where = f" at {_worst(read(table, [entity, *amounts]), entity, amounts, case)}"
    if total - shares[largest] < 0.0005:
        return f"{percent(total)} of the simulated cost is {description}{where}"
    return f"{percent(total)} of the simulated cost is penalties, {percent(shares[largest])} {description}{where}"


def stored_cost_note(folder: Path, case: Case) -> str | None:
    """Return the `cost_note` of a simulation whose tables are in a folder."""
    return cost_note(lambda name, columns: StoredRows(folder / f"{name}.parquet").pieces(columns), case)


def _shares(costs: "Iterable[pa.Table]") -> dict[str, float]:
    """Return the share of each penalty in the discounted cost of all scenarios."""
    total, sums = 0.0, dict.fromkeys(PENALTIES, 0.0)
    for rows in costs:
        factors = _numbers(rows, "discount_factor")
        total += float(_numbers(rows, "immediate_cost") @ factors)
        for name in PENALTIES:
            sums[name] += float(_numbers(rows, name) @ factors)
    return {name: value / total if total > 0.0 else 0.0 for name, value in sums.items()}


def _amounts(pieces: "Iterable[pa.Table]", entity: str, amounts: Sequence[str]) -> dict[int, float]:
    """Return the sum of violations over scenarios, stages and blocks, by id of plant or bus."""
    sums: dict[int, float] = defaultdict(float)
    for rows in pieces:
        ids, positions = np.unique(numbers_of(rows[entity]), return_inverse=True)
        totals = np.bincount(positions, sum(np.abs(_numbers(rows, name)) for name in amounts))
        for id_, amount in zip(ids.tolist(), totals.tolist(), strict=True):
            sums[int(id_)] += amount
    return dict(sorted(sums.items()))


def _worst(pieces: "Iterable[pa.Table]", entity: str, amounts: Sequence[str], case: Case | None) -> str:
    """Name the plant or bus with the largest amount, and its share if others have some."""
    sums = _amounts(pieces, entity, amounts)
    worst = max(sums, key=lambda id_: sums[id_])
    total = sum_in_order(sums.values())
    share = sums[worst] / total if total > 0.0 else 0.0
    kind, several = ("bus", "buses") if entity == "bus_id" else ("plant", "plants")
    name = _name(entity, worst, None if case is None else case.system)
    if share > 0.995:
        return f"{kind} {name}"
    return f"{sum(amount > NEGLIGIBLE for amount in sums.values())} {several}, {100 * share:.0f} % of it at {name}"


def _name(entity: str, id_: int, system: System | None) -> str:
    if system is None:
        return str(id_)
    members: Sequence[object] = system.buses if entity == "bus_id" else system.hydros
    return next((str(getattr(item, "name", id_)) for item in members if getattr(item, "id", None) == id_), str(id_))


def _numbers(table: "pa.Table", name: str) -> Floats:
    """Return a column, with zeros in place of nulls."""
    return np.nan_to_num(np.asarray(numbers_of(table[name]), np.float64))
