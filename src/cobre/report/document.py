"""Self-contained HTML pages with style, scripts and data: for the report and the comparison page."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from cobre import __version__
from cobre.report.section import Section

CHART_SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "static/charts.js")
LAST_SCRIPT = "static/page.js"


def document(
    title: str,
    subtitle: str,
    body: str,
    data: Mapping[str, Any],
    *,
    brand: str = "Cobre report",
    banner: str = "",
    contents: Sequence[tuple[str, str]] = (),
    scripts: Sequence[str] = (),
) -> str:
    """The page as HTML.

    `body` and `banner` are HTML; `data` has "charts" by key (`Chart.as_dict`), which the page draws into the cards of
    `section.chart_card`; `contents` are pairs of an element's id and a title; `scripts` are further files.
    """
    return Template(text_of("static/page.html")).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        brand=escape(brand),
        banner=banner,
        contents="".join(f'<a href="#{key}">{escape(name)}</a>' for key, name in contents),
        body=body,
        data=embedded(data),
        style=text_of("vendor/uplot/uPlot.min.css") + "\n" + text_of("static/style.css"),
        script="\n".join(text_of(name) for name in (*CHART_SCRIPTS, *scripts, LAST_SCRIPT)),
        version=escape(__version__),
    )


def numbers_of(sections: Sequence[Section]) -> dict[str, Any]:
    """The data of all charts and tables, for `data` of `document`."""
    return {
        "charts": {chart.key: chart.as_dict() for section in sections for chart in section.charts},
        "tables": {table.key: table.as_dict() for section in sections for table in section.tables},
    }


def embedded(data: Mapping[str, Any]) -> str:
    """JSON without `<`, so that it cannot end the script element that contains it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def text_of(name: str) -> str:
    """The text of a file that ships with the report, such as a script or style sheet."""
    return resources.files("cobre.report").joinpath(name).read_text(encoding="utf-8")
