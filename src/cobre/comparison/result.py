"""`StudyComparison`: what `cobre.compare` returns."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre import notebook
from cobre.comparison.measures import (
    COMPARED_QUANTITIES,
    CONFIDENCE,
    COST,
    ComparedMeans,
    QuantityMeans,
    compare_means,
    title_of,
    unit_of,
)
from cobre.comparison.runs import ComparedRun, NotComparableError
from cobre.core.file_names import MANIFEST_FILE, SIMULATION
from cobre.io.output import ResultsError
from cobre.io.storage.stored_json import json_value
from cobre.records import dataclass
from cobre.runs.bit_comparison import Comparison, compare_runs
from cobre.runs.content import IncompleteRunError
from cobre.runs.labels import NEGLIGIBLE

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from cobre.study.results import SimulationResult


NUMBERS = ("a", "b", "difference", "half_width")
COMPONENT = "cost_component"


def long_table(money: ComparedMeans | None) -> "pa.Table":
    """Return a row for each quantity, entity (null: the system) and stage (null: the horizon)."""
    import pyarrow as pa

    schema = _schema()
    if money is None:
        return schema.empty_table()
    tables = [pa.table(_columns(key, compared, money), schema) for key, compared in money.quantities.items()]
    return pa.concat_tables(tables)


def _schema() -> "pa.Schema":
    import pyarrow as pa

    text, id_ = pa.string(), pa.int32()
    ids = [("quantity", text), ("title", text), ("unit", text), ("entity_kind", text), ("entity_id", id_)]
    ids += [("entity", text), ("present_in", text), ("stage_id", id_), ("stage", text)]
    return pa.schema(ids + [(name, pa.float64()) for name in NUMBERS])


def _columns(key: str, compared: QuantityMeans, money: ComparedMeans) -> dict[str, "pa.Array"]:
    import pyarrow as pa

    stages, entities = [*money.stages, None], [*compared.entities, None]
    kind = COMPARED_QUANTITIES[key].entity_kind if key in COMPARED_QUANTITIES else COMPONENT
    num_columns, num_stages = len(entities), len(stages)
    ids = [None if key == COST or item is None else item.b if item.a is None else item.a for item in entities]
    columns: dict[str, list[Any]] = {
        "quantity": [key] * (num_stages * num_columns),
        "title": [title_of(key)] * (num_stages * num_columns),
        "unit": [unit_of(key)] * (num_stages * num_columns),
        "entity_kind": [kind if item is not None else None for item in entities] * num_stages,
        "entity_id": ids * num_stages,
        "entity": [item.name if item is not None else None for item in entities] * num_stages,
        "present_in": [item.present_in if item is not None else "both" for item in entities] * num_stages,
        "stage_id": [item.a if item is not None else None for item in stages for _ in entities],
        "stage": [item.name if item is not None else None for item in stages for _ in entities],
    }
    numbers = {name: pa.array(_nullable(getattr(compared.means, name).ravel())) for name in NUMBERS}
    return {name: pa.array(values) for name, values in columns.items()} | numbers


def _nullable(values: "np.ndarray[Any, np.dtype[np.float64]]") -> "pa.Array":
    import pyarrow as pa

    return pa.array(values, mask=~np.isfinite(values))


def summary(rows: "pa.Table") -> "pa.Table":
    """Select the system and the cost components over the horizon, without rows that are zero in both studies."""
    import pyarrow.compute as pc

    is_shown = pc.or_(pc.is_null(rows["entity"]), pc.equal(rows["entity_kind"], COMPONENT).fill_null(False))
    selected = rows.filter(pc.and_(pc.is_null(rows["stage"]), is_shown))
    selected = _total_first(selected.filter(_is_not_negligible(selected)))
    return selected.drop_columns(["entity_kind", "entity_id", "present_in", "stage_id", "stage"]).rename_columns(
        ["quantity", "title", "unit", "component", *NUMBERS]
    )


def _total_first(rows: "pa.Table") -> "pa.Table":
    """Sort the rows so that the total cost comes before its components."""
    is_total = np.array([entity is None for entity in rows["entity"].to_pylist()], bool)
    is_cost = np.array([key == COST for key in rows["quantity"].to_pylist()], bool)
    order = np.lexsort((np.arange(len(is_cost)), ~is_total, ~is_cost))
    return rows.take(order) if len(order) else rows


def _is_not_negligible(rows: "pa.Table") -> "pa.Array":
    """Return for each row whether the mean of either study is above `NEGLIGIBLE`."""
    import pyarrow as pa

    sizes = [np.nan_to_num(np.abs(_floats(rows[name]))) > NEGLIGIBLE for name in ("a", "b")]
    return pa.array(sizes[0] | sizes[1])


def by_stage(rows: "pa.Table") -> "pa.Table":
    """Select the rows of the whole system, stage by stage."""
    import pyarrow.compute as pc

    selected = rows.filter(pc.and_(pc.is_valid(rows["stage"]), pc.is_null(rows["entity"])))
    selected = selected.filter(pc.is_valid(selected["difference"]))
    return selected.drop_columns(["entity_kind", "entity_id", "entity", "present_in"])


def by_entity(rows: "pa.Table") -> "pa.Table":
    """Return each plant, bus and line over the horizon."""
    import pyarrow.compute as pc

    is_entity = pc.and_(pc.is_valid(rows["entity_id"]), pc.is_null(rows["stage"]))
    selected = rows.filter(is_entity)
    return selected.filter(_is_not_negligible(selected)).drop_columns(["stage_id", "stage"])


def only_in(money: ComparedMeans, side: str) -> list[tuple[str, int, str]]:
    """Return the entities that only study A, or only B, has: kind, id and name."""
    unmatched: dict[tuple[str, int, str], None] = {}
    for key, compared in money.quantities.items():
        if key not in COMPARED_QUANTITIES:
            continue
        for entity in compared.entities:
            if entity.present_in == side:
                id_ = entity.a if side == "A" else entity.b
                unmatched[COMPARED_QUANTITIES[key].entity_kind, int(id_ or 0), entity.name] = None
    return list(unmatched)


def plain_rows(table: "pa.Table") -> list[dict[str, Any]]:
    """Return rows as JSON objects."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return [{key: json_value(value) for key, value in row.items()} for row in rows]


def _floats(column: "pa.ChunkedArray") -> "np.ndarray[Any, np.dtype[np.float64]]":
    values: np.ndarray[Any, np.dtype[np.float64]] = column.to_numpy()
    return values


@dataclass(frozen=True)
class StudyComparison:
    """Two studies, A and B: whether their bits are the same, and how the means of their simulations differ.

    bits: identical, or the first difference; None for simulations in memory. money: the compared means; None if one of
    the two has no simulation, which `notes` names.

    Tables are Arrow tables with the columns `a`, `b` (means over common scenarios), `difference` (b - a) and
    `half_width` (of the 95 % confidence interval of the difference).
    """

    names: tuple[str, str]
    bits: Comparison | None
    money: ComparedMeans | None
    notes: tuple[str, ...] = ()

    @property
    def is_identical(self) -> bool:
        """Whether both runs have the same bits; False if bits could not be compared."""
        return self.bits is not None and self.bits.is_identical

    @cached_property
    def all_rows(self) -> "pa.Table":
        """Every quantity by entity and stage. No entity: the system; no stage: the horizon."""
        return long_table(self.money)

    @property
    def summary(self) -> "pa.Table":
        """The system over the whole horizon: cost, its components, and every other quantity."""
        return summary(self.all_rows)

    @property
    def stages(self) -> "pa.Table":
        """Every quantity of the whole system, stage by stage."""
        return by_stage(self.all_rows)

    @property
    def entities(self) -> "pa.Table":
        """Each plant, bus and line over the whole horizon; `present_in` is A, B or both."""
        return by_entity(self.all_rows)

    def table(self, name: str) -> "pa.Table":
        """Return one of the tables by name: `summary`, `stages`, `entities` or `all_rows`."""
        names = ("summary", "stages", "entities", "all_rows")
        if name not in names:
            raise KeyError(f"there is no table {name!r}; a comparison has {', '.join(names)}")
        table: pa.Table = getattr(self, name)
        return table

    def only_in(self, side: str) -> list[tuple[str, int, str]]:
        """Return entities that only A, or only B, has: kind, id and name."""
        return [] if self.money is None else only_in(self.money, side)

    def to_arrow(self, name: str = "summary") -> "pa.Table":
        """Return one of the tables by name; the same as `table`."""
        return self.table(name)

    def to_pandas(self, name: str = "summary") -> Any:
        """Return a table (`summary`, `stages`, `entities` or `all_rows`) as a pandas DataFrame."""
        from cobre.study.dataframes import as_pandas

        return as_pandas(self.table(name))

    def to_polars(self, name: str = "summary") -> Any:
        """Return a table (`summary`, `stages`, `entities` or `all_rows`) as a polars DataFrame."""
        from cobre.study.dataframes import as_polars

        return as_polars(self.table(name))

    def plot(self, quantity: str = "cost", entity: int | str | None = None) -> "Figure":
        """Draw both studies by stage, and below them the difference with its 95 % interval, as a Matplotlib figure.

        quantity: cost, marginal_cost, storage, hydro_generation, thermal_generation, deficit, spillage, water_value or
        any other of `summary`. entity: the id or name of a plant or bus, or the name of a component of the cost;
        without it, the system.
        """
        from cobre.study.dataframes import library

        library("matplotlib", "[plots]")
        from cobre.comparison.figures import plot

        notebook.show_figures()
        return plot(self, quantity, entity)

    def write_html(self, path: str | Path) -> Path:
        """Write a self-contained HTML page; an existing file is replaced. Raises WriteError."""
        from cobre.comparison.page import write_page

        return write_page(self, Path(path))

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values: the comparison of bits, and under `money` the rows of summary, stages and entities."""
        bits = {} if self.bits is None else self.bits.as_dict()
        return {**bits, "money": self._money_as_dict(), "comparison_notes": list(self.notes)}

    def _money_as_dict(self) -> dict[str, Any] | None:
        if self.money is None:
            return None
        return {
            "scenarios": self.money.scenarios,
            "has_same_inflows": self.money.has_same_inflows,
            "confidence": CONFIDENCE,
            **{name: plain_rows(self.table(name)) for name in ("summary", "stages", "entities")},
            "only_in_a": _entity_dicts(self.only_in("A")),
            "only_in_b": _entity_dicts(self.only_in("B")),
        }

    def __str__(self) -> str:
        from cobre.comparison.text import comparison_text

        return comparison_text(self)

    def __repr__(self) -> str:
        from cobre.comparison.text import one_line

        return f"<StudyComparison: {one_line(self)}>"

    def _repr_html_(self) -> str:
        from cobre.comparison.page import snippet

        return snippet(self)


def _entity_dicts(entities: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
    return [{"kind": kind, "id": id_, "name": name} for kind, id_, name in entities]


# `cobre.compare`: load two studies, match their stages and entities, compare bits and means.


def compare(a: "str | Path | SimulationResult", b: "str | Path | SimulationResult") -> StudyComparison:
    """Compare study A with study B: whether bits are equal, and how costs, generation, storages and prices differ.

    a, b: output directories of runs, or two results of `cobre.simulate`. The studies may differ in plants, buses and
    stages: what both have is compared scenario by scenario, and what only one has is listed. Tables are read row group
    by row group, so that memory does not grow with the number of scenarios.

    >>> policies = [cobre.train("examples/two_reservoirs", iterations=n).policy for n in (1, 5)]
    >>> few, more = (cobre.simulate("examples/two_reservoirs", policy, scenarios=50) for policy in policies)
    >>> compared = cobre.compare(few, more)
    >>> [name for name in compared.summary.column_names if name in ("a", "b", "difference", "half_width")]
    ['a', 'b', 'difference', 'half_width']

    Raises IncompleteRunError for a directory without complete results, and NotComparableError if the two have no
    stage or scenario in common.
    """
    if isinstance(a, str | Path) and isinstance(b, str | Path):
        return compare_folders(Path(a), Path(b))
    if isinstance(a, str | Path) or isinstance(b, str | Path):
        raise TypeError("compare two output directories, or two results of cobre.simulate, not one of each")
    runs = [ComparedRun.in_memory(result, name) for result, name in ((a, "A"), (b, "B"))]
    money = compare_means(*runs)
    return StudyComparison(("A", "B"), None, money, money.notes)


def compare_folders(a: Path, b: Path) -> StudyComparison:
    """Compare the output directories of two runs: bits, and means where both have simulated."""
    bits = compare_runs(a, b)
    try:
        runs = [ComparedRun.stored(folder) for folder in (a, b)]
        money: ComparedMeans | None = compare_means(*runs)
        notes = money.notes if money else ()
    except NotComparableError as error:
        money, notes = None, (str(error),)
    except ResultsError as error:
        if all((folder / SIMULATION / MANIFEST_FILE).exists() for folder in (a, b)):
            raise IncompleteRunError(str(error)) from error
        missing = [str(folder) for folder in (a, b) if not (folder / SIMULATION / MANIFEST_FILE).exists()]
        money, notes = None, (f"{' and '.join(missing)}: no simulation, so there is nothing to compare in money",)
    return StudyComparison((str(a), str(b)), bits, money, notes)
