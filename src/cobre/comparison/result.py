"""`StudyComparison`: what `cobre.compare` returns."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre import notebook
from cobre.comparison import tables
from cobre.comparison.money import Money
from cobre.comparison.paired_means import CONFIDENCE
from cobre.records import dataclass
from cobre.runs.bit_comparison import Comparison

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class StudyComparison:
    """Two studies, A and B: whether their bits are the same, and how the means of their simulations differ.

    bits: identical, or the first difference; None for simulations in memory. money: the compared means; None where one
    of the two has no simulation, and `notes` says which.

    Tables are Arrow tables with the columns `a`, `b` (means over common scenarios), `difference` (b - a) and
    `half_width` (of the 95 % confidence interval of the difference).
    """

    names: tuple[str, str]
    bits: Comparison | None
    money: Money | None
    notes: tuple[str, ...] = ()

    @property
    def is_identical(self) -> bool:
        """Whether both runs have the same bits; False where bits could not be compared."""
        return self.bits is not None and self.bits.is_identical

    @cached_property
    def all_rows(self) -> "pa.Table":
        """Every quantity by entity and stage. No entity: the system; no stage: the horizon."""
        return tables.long_table(self.money)

    @property
    def summary(self) -> "pa.Table":
        """The system over the whole horizon: cost, its components, and every other quantity."""
        return tables.summary(self.all_rows)

    @property
    def stages(self) -> "pa.Table":
        """Every quantity of the whole system, stage by stage."""
        return tables.by_stage(self.all_rows)

    @property
    def entities(self) -> "pa.Table":
        """Each plant, bus and line over the whole horizon; `present_in` says A, B or both."""
        return tables.by_entity(self.all_rows)

    def table(self, name: str) -> "pa.Table":
        """One of the tables by name: `summary`, `stages`, `entities` or `all_rows`."""
        known = ("summary", "stages", "entities", "all_rows")
        if name not in known:
            raise KeyError(f"there is no table {name!r}; a comparison has {', '.join(known)}")
        found: pa.Table = getattr(self, name)
        return found

    def only_in(self, side: str) -> list[tuple[str, int, str]]:
        """Entities that only A, or only B, has: kind, id and name."""
        return [] if self.money is None else tables.only_in(self.money, side)

    def to_arrow(self, name: str = "summary") -> "pa.Table":
        """One of the tables by name; the same as `table`."""
        return self.table(name)

    def to_pandas(self, name: str = "summary") -> Any:
        """A table (`summary`, `stages`, `entities` or `all_rows`) as a pandas DataFrame."""
        from cobre.study.results.dataframes import as_pandas

        return as_pandas(self.table(name))

    def to_polars(self, name: str = "summary") -> Any:
        """A table (`summary`, `stages`, `entities` or `all_rows`) as a polars DataFrame."""
        from cobre.study.results.dataframes import as_polars

        return as_polars(self.table(name))

    def plot(self, quantity: str = "cost", entity: int | str | None = None) -> "Figure":
        """A Matplotlib figure of both studies by stage, and below them the difference with its 95 % interval.

        quantity: cost, marginal_cost, storage, hydro_generation, thermal_generation, deficit, spillage, water_value or
        any other of `summary`. entity: the id or name of a plant or bus, or the name of a component of the cost;
        without it, the system.
        """
        from cobre.study.results.dataframes import library

        library("matplotlib", "[plots]")
        from cobre.comparison.figures import plot

        notebook.show_figures()
        return plot(self, quantity, entity)

    def write_html(self, path: str | Path) -> Path:
        """Write a self-contained HTML page; an existing file is replaced. Raises WriteError."""
        from cobre.comparison.page import write_page

        return write_page(self, Path(path))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the comparison of bits, and under `money` the rows of summary, stages and entities."""
        bits = {} if self.bits is None else self.bits.as_dict()
        return {**bits, "money": self._money_as_dict(), "comparison_notes": list(self.notes)}

    def _money_as_dict(self) -> dict[str, Any] | None:
        if self.money is None:
            return None
        return {
            "scenarios": self.money.scenarios,
            "has_same_inflows": self.money.has_same_inflows,
            "confidence": CONFIDENCE,
            **{name: tables.plain_rows(self.table(name)) for name in ("summary", "stages", "entities")},
            "only_in_a": _named(self.only_in("A")),
            "only_in_b": _named(self.only_in("B")),
        }

    def __str__(self) -> str:
        from cobre.comparison.text import described

        return described(self)

    def __repr__(self) -> str:
        from cobre.comparison.text import in_a_line

        return f"<StudyComparison: {in_a_line(self)}>"

    def _repr_html_(self) -> str:
        from cobre.comparison.page import snippet

        return snippet(self)


def _named(found: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
    return [{"kind": kind, "id": id_, "name": name} for kind, id_, name in found]
