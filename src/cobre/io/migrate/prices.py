"""fpha_turbined_cost becomes turbined_cost, which is charged on every plant: those without planes get 0."""

from typing import TYPE_CHECKING

from cobre.io.migrate.old_case import Json, Notes, OldCase
from cobre.io.migrate.production import FILE as MODELS

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "penalties.json"
HYDROS = "system/hydros.json"
OVERRIDES = "constraints/penalty_overrides_hydro.parquet"
OLD, NEW = "fpha_turbined_cost", "turbined_cost"


def convert_turbined_cost(case: OldCase, notes: Notes) -> None:
    """Convert the costs so that plants pay the same as before; production models must have been converted before."""
    hydro_prices = case.documents[FILE].get("hydro", {})
    if OLD in hydro_prices:
        hydro_prices[NEW] = hydro_prices.pop(OLD)
        notes.converted(FILE, f"hydro.{OLD} is now hydro.{NEW}")
    with_planes = _stages_with_planes(case)
    for hydro in case.entities(HYDROS, "hydros"):
        _convert_own_price(hydro, is_charged=bool(with_planes[hydro["id"]]), notes=notes)
    _convert_overrides(case, with_planes, notes)
    _free_other_stages(case, with_planes, notes)


def _stages_with_planes(case: OldCase) -> dict[int, set[int]]:
    """By plant, the stages in which its model is fpha."""
    stages = [stage["id"] for stage in case.stages]
    found: dict[int, set[int]] = {hydro["id"]: set() for hydro in case.entities(HYDROS, "hydros")}
    for record in case.entities(MODELS, "production_models"):
        for span in record["stage_ranges"]:
            last = stages[-1] if span["end_stage_id"] is None else span["end_stage_id"]
            if span["model"] == "fpha":
                found[record["hydro_id"]] |= {id_ for id_ in stages if span["start_stage_id"] <= id_ <= last}
    return found


def _convert_own_price(hydro: Json, *, is_charged: bool, notes: Notes) -> None:
    prices = hydro.get("penalties") or {}
    old = prices.pop(OLD, None)
    if not is_charged:
        prices[NEW] = 0.0
        notes.converted(HYDROS, f"hydro {hydro['id']}: penalties.{NEW} is 0, for it has no planes and was not charged")
    elif old is not None:
        prices[NEW] = old
        notes.converted(HYDROS, f"hydro {hydro['id']}: penalties.{OLD} is now penalties.{NEW}")
    if prices:
        hydro["penalties"] = prices


def _convert_overrides(case: OldCase, with_planes: dict[int, set[int]], notes: Notes) -> None:
    table = case.tables.get(OVERRIDES)
    if table is None or OLD not in table.column_names:
        return
    rows = table.to_pylist()
    for row in rows:
        cost = row.pop(OLD)
        row[NEW] = cost if row["stage_id"] in with_planes.get(row["hydro_id"], set()) else None
    case.tables[OVERRIDES] = _table(rows)
    notes.converted(OVERRIDES, f"{OLD} is now {NEW}")


def _free_other_stages(case: OldCase, with_planes: dict[int, set[int]], notes: Notes) -> None:
    """Set the cost to 0 in stages in which a plant has no planes."""
    stages = {stage["id"] for stage in case.stages}
    free = [
        (hydro_id, stage_id)
        for hydro_id, charged in sorted(with_planes.items())
        if charged
        for stage_id in sorted(stages - charged)
    ]
    if not free:
        return
    table = case.tables.get(OVERRIDES)
    rows = {(row["hydro_id"], row["stage_id"]): row for row in (table.to_pylist() if table is not None else [])}
    for key in free:
        row = rows.setdefault(key, {"hydro_id": key[0], "stage_id": key[1]})
        row[NEW] = 0.0
    case.tables[OVERRIDES] = _table(list(rows.values()))
    notes.converted(OVERRIDES, f"{NEW} is 0 in stages in which a plant has no planes")


def _table(rows: list[Json]) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    names = dict.fromkeys(name for row in rows for name in row)
    types = {name: pa.int32() if name.endswith("_id") else pa.float64() for name in names}
    return pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})
