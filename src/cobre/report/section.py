"""A part of the page: charts, tables and pieces of HTML under one heading."""

import re
from collections.abc import Sequence
from dataclasses import field
from html import escape

from cobre.records import dataclass
from cobre.report.chart import Chart, Mark
from cobre.report.data_table import DataTable
from cobre.report.palette import variable

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
        """The section as HTML, with a heading that links can point to."""
        intro = f'<p class="intro">{with_code(self.intro)}</p>' if self.intro else ""
        body = "".join(_part(part) for part in self.parts)
        return (
            f'<section id="{self.key}" aria-labelledby="{self.key}-title"><h2 id="{self.key}-title">'
            f'{escape(self.title)}</h2>{intro}<div class="grid">{body}</div></section>'
        )


def with_code(text: str) -> str:
    """The text as escaped HTML, with text in backticks as code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def _part(part: Chart | DataTable | str) -> str:
    if isinstance(part, str):
        return part
    return part.html() if isinstance(part, DataTable) else chart_card(part)


def chart_card(chart: Chart) -> str:
    """A figure with its legend; the script of the page draws it, and adds a cursor, a table, CSV and a large view."""
    legend = "".join(_legend_entry(mark) for mark in chart.legend)
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


def _legend_entry(mark: Mark) -> str:
    style = f"--mark:{variable(mark.colour)};--strength:{mark.strength:.2f}"
    return f'<li><span class="mark {mark.kind}" style="{style}" aria-hidden="true"></span>{escape(mark.name)}</li>'
