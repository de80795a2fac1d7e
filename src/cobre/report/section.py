"""Sections of a page: charts, tables and HTML under one heading."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from html import escape
from typing import Any

from cobre.io.storage.stored_json import json_value
from cobre.records import dataclass
from cobre.report.charts import Chart, LegendEntry, variable
from cobre.text import NO_VALUE, digits, duration_spelled, money_spelled, percent_spelled

# Tables, whose numbers are also in the data of the page.

Cell = str | float | int | None


FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "integer": lambda value: f"{value:,}",
    "number": digits,
    "money": money_spelled,
    "percent": percent_spelled,
    "seconds": duration_spelled,
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A heading, and the format of its cells (a key of FORMATS), whose numbers are divided by `divisor`."""

    title: str
    format: str = "text"
    divisor: float = 1.0

    @property
    def css(self) -> str:
        """The attribute of its cells: numbers are right-aligned."""
        return "" if self.format == "text" else ' class="num"'


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table with a note below; rows with an index in `marked` are highlighted.

    entity_kind: kind of the entities in the first column (a key of `simulated.KINDS`), which the page turns into links.
    """

    key: str
    title: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    marked: frozenset[int] = frozenset()
    is_wide: bool = False
    entity_kind: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the table in full precision; NaN and infinities are null."""
        rows = [[json_value(cell) for cell in row] for row in self.rows]
        return {"columns": [column.title for column in self.columns], "rows": rows}

    def html(self) -> str:
        """Render the table as an HTML card, which scrolls sideways on a narrow screen."""
        head = "".join(f'<th scope="col"{column.css}>{escape(column.title)}</th>' for column in self.columns)
        body = "".join(self._row(index, row) for index, row in enumerate(self.rows))
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        wide = " wide" if self.is_wide else ""
        kind = f' data-kind="{self.entity_kind}"' if self.entity_kind else ""
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
        text = NO_VALUE if scaled is None else FORMATS[column.format](scaled)
        return f"<td{column.css}>{escape(text)}</td>"


CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Section:
    """A section with `parts` in order; a str is HTML that is already escaped."""

    key: str
    title: str
    parts: Sequence[Chart | DataTable | str]
    intro: str = ""
    charts: list[Chart] = field(init=False)
    tables: list[DataTable] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "charts", [part for part in self.parts if isinstance(part, Chart)])
        object.__setattr__(self, "tables", [part for part in self.parts if isinstance(part, DataTable)])

    def html(self) -> str:
        """Render the section as HTML, with a heading that links can point to."""
        intro = f'<p class="intro">{with_code(self.intro)}</p>' if self.intro else ""
        body = "".join(_part(part) for part in self.parts)
        return (
            f'<section id="{self.key}" aria-labelledby="{self.key}-title"><h2 id="{self.key}-title">'
            f'{escape(self.title)}</h2>{intro}<div class="grid">{body}</div></section>'
        )


def with_code(text: str) -> str:
    """Escape the text as HTML, with text in backticks as code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def _part(part: Chart | DataTable | str) -> str:
    if isinstance(part, str):
        return part
    return part.html() if isinstance(part, DataTable) else chart_card(part)


def chart_card(chart: Chart) -> str:
    """Render the frame and the legend of a chart, which the script of the page draws."""
    legend = "".join(_legend_item(entry) for entry in chart.legend)
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    explanation = f'<p class="explanation">{with_code(chart.explanation)}</p>' if chart.explanation else ""
    marks = f'<ul class="legend">{legend}</ul>' if legend else ""
    label = escape(f"{chart.title}. {chart.description}", quote=True)
    caption = escape(chart.caption)
    return (
        f'<figure class="card" id="{chart.key}" data-chart="{chart.key}"><figcaption><h3>{escape(chart.title)}</h3>'
        f'{explanation}{marks}</figcaption><p class="caption">{caption}</p>'
        f'<div class="plot" role="img" aria-label="{label}" tabindex="0"></div>{note}</figure>'
    )


def _legend_item(entry: LegendEntry) -> str:
    style = f"--mark:{variable(entry.colour)};--strength:{entry.strength:.2f}"
    return f'<li><span class="mark {entry.drawing}" style="{style}" aria-hidden="true"></span>{escape(entry.name)}</li>'
