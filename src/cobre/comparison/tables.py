"""The numbers of a comparison as tables."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.comparison.money import Compared, Money
from cobre.comparison.quantities import COST, QUANTITIES, title_of, unit_of
from cobre.core.indicators import NEGLIGIBLE

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = ("a", "b", "difference", "half_width")
COMPONENT = "cost_component"


def long_table(money: Money | None) -> "pa.Table":
    """A row for each quantity, entity (null: the system) and stage (null: the horizon)."""
    import pyarrow as pa

    schema = _schema()
    if money is None:
        return schema.empty_table()
    parts = [pa.table(_columns(key, found, money), schema) for key, found in money.quantities.items()]
    return pa.concat_tables(parts)


def _schema() -> "pa.Schema":
    import pyarrow as pa

    text, id_ = pa.string(), pa.int32()
    ids = [("quantity", text), ("title", text), ("unit", text), ("entity_kind", text), ("entity_id", id_)]
    ids += [("entity", text), ("present_in", text), ("stage_id", id_), ("stage", text)]
    return pa.schema(ids + [(name, pa.float64()) for name in NUMBERS])


def _columns(key: str, found: Compared, money: Money) -> dict[str, "pa.Array"]:
    import pyarrow as pa

    stages, entities = [*money.stages, None], [*found.entities, None]
    kind = QUANTITIES[key].kind if key in QUANTITIES else COMPONENT
    each, count = len(entities), len(stages)
    ids = [None if key == COST or one is None else one.b if one.a is None else one.a for one in entities]
    columns: dict[str, list[Any]] = {
        "quantity": [key] * (count * each),
        "title": [title_of(key)] * (count * each),
        "unit": [unit_of(key)] * (count * each),
        "entity_kind": [kind if one is not None else None for one in entities] * count,
        "entity_id": ids * count,
        "entity": [one.name if one is not None else None for one in entities] * count,
        "present_in": [one.present_in if one is not None else "both" for one in entities] * count,
        "stage_id": [one.a if one is not None else None for one in stages for _ in entities],
        "stage": [one.name if one is not None else None for one in stages for _ in entities],
    }
    numbers = {name: pa.array(_nullable(getattr(found.means, name).ravel())) for name in NUMBERS}
    return {name: pa.array(values) for name, values in columns.items()} | numbers


def _nullable(values: "np.ndarray[Any, np.dtype[np.float64]]") -> "pa.Array":
    import pyarrow as pa

    return pa.array(values, mask=~np.isfinite(values))


def summary(rows: "pa.Table") -> "pa.Table":
    """The system and the components of the cost over the horizon; rows that are zero in both studies are left out."""
    import pyarrow.compute as pc

    is_wanted = pc.or_(pc.is_null(rows["entity"]), pc.equal(rows["entity_kind"], COMPONENT).fill_null(False))
    found = rows.filter(pc.and_(pc.is_null(rows["stage"]), is_wanted))
    found = _total_first(found.filter(_is_something(found)))
    return found.drop_columns(["entity_kind", "entity_id", "present_in", "stage_id", "stage"]).rename_columns(
        ["quantity", "title", "unit", "component", *NUMBERS]
    )


def _total_first(rows: "pa.Table") -> "pa.Table":
    """The rows with the total cost before its components."""
    is_total = np.array([entity is None for entity in rows["entity"].to_pylist()], bool)
    is_cost = np.array([key == COST for key in rows["quantity"].to_pylist()], bool)
    order = np.lexsort((np.arange(len(is_cost)), ~is_total, ~is_cost))
    return rows.take(order) if len(order) else rows


def _is_something(rows: "pa.Table") -> "pa.Array":
    """Rows in which either study's mean is above the tolerance of indicators."""
    import pyarrow as pa

    sizes = [np.nan_to_num(np.abs(_floats(rows[name]))) > NEGLIGIBLE for name in ("a", "b")]
    return pa.array(sizes[0] | sizes[1])


def by_stage(rows: "pa.Table") -> "pa.Table":
    """The rows of the whole system, stage by stage."""
    import pyarrow.compute as pc

    found = rows.filter(pc.and_(pc.is_valid(rows["stage"]), pc.is_null(rows["entity"])))
    found = found.filter(pc.is_valid(found["difference"]))
    return found.drop_columns(["entity_kind", "entity_id", "entity", "present_in"])


def by_entity(rows: "pa.Table") -> "pa.Table":
    """Each plant, bus and line over the horizon."""
    import pyarrow.compute as pc

    is_entity = pc.and_(pc.is_valid(rows["entity_id"]), pc.is_null(rows["stage"]))
    found = rows.filter(is_entity)
    return found.filter(_is_something(found)).drop_columns(["stage_id", "stage"])


def only_in(money: Money, side: str) -> list[tuple[str, int, str]]:
    """Entities that one of the two studies has alone."""
    found: dict[tuple[str, int, str], None] = {}
    for key, compared in money.quantities.items():
        if key not in QUANTITIES:
            continue
        for entity in compared.entities:
            if entity.present_in == side:
                id_ = entity.a if side == "A" else entity.b
                found[QUANTITIES[key].kind, int(id_ or 0), entity.name] = None
    return list(found)


def plain_rows(table: "pa.Table") -> list[dict[str, Any]]:
    """Rows as dictionaries that JSON can hold."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return [{key: _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _floats(column: "pa.ChunkedArray") -> "np.ndarray[Any, np.dtype[np.float64]]":
    found: np.ndarray[Any, np.dtype[np.float64]] = column.to_numpy()
    return found
