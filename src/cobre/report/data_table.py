"""Tables with headings, whose numbers can also be read back from the page."""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from cobre.records import dataclass
from cobre.runs import formatting

Cell = str | float | int | None

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "integer": lambda value: f"{value:,}",
    "number": formatting.digits,
    "money": formatting.money_in_words,
    "percent": formatting.percent_in_words,
    "seconds": formatting.duration_in_words,
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A heading, and the format of its cells (a key of FORMATS), whose numbers are divided by `divisor`."""

    title: str
    kind: str = "text"
    divisor: float = 1.0

    @property
    def css(self) -> str:
        """The attribute of its cells: numbers are right-aligned."""
        return "" if self.kind == "text" else ' class="num"'


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table with a note below; rows whose index is in `marked` are highlighted.

    kind: the kind of entity in the first column (a key of `quantities.KINDS`), which the page turns into links.
    """

    key: str
    title: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    marked: frozenset[int] = frozenset()
    is_wide: bool = False
    kind: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The table in full precision; NaN and infinities are null."""
        rows = [[_plain(cell) for cell in row] for row in self.rows]
        return {"columns": [column.title for column in self.columns], "rows": rows}

    def html(self) -> str:
        """The table as an HTML card, which scrolls sideways on a narrow screen."""
        head = "".join(f'<th scope="col"{column.css}>{escape(column.title)}</th>' for column in self.columns)
        body = "".join(self._row(index, row) for index, row in enumerate(self.rows))
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        wide = " wide" if self.is_wide else ""
        kind = f' data-kind="{self.kind}"' if self.kind else ""
        return (
            f'<section class="card table{wide}" id="{self.key}"{kind}><h3>{escape(self.title)}</h3>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}</section>"
        )

    def _row(self, index: int, row: Sequence[Cell]) -> str:
        cells = "".join(self._cell(column, cell) for column, cell in zip(self.columns, row, strict=True))
        return f'<tr class="marked">{cells}</tr>' if index in self.marked else f"<tr>{cells}</tr>"

    @staticmethod
    def _cell(column: TableColumn, cell: Cell) -> str:
        scaled = cell if cell is None or isinstance(cell, str) or column.divisor == 1.0 else cell / column.divisor
        text = formatting.NOTHING if scaled is None else FORMATS[column.kind](scaled)
        return f"<td{column.css}>{escape(text)}</td>"


def _plain(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
