"""The whole page: sections, the numbers behind them, style and script, in one file that needs nothing else."""

import json
from collections.abc import Callable, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from cobre import __version__
from cobre.report.errors import STRANGE
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.sections import overview
from cobre.report.sections.convergence import convergence
from cobre.report.sections.costs import costs
from cobre.report.sections.generation import generation
from cobre.report.sections.prices import prices
from cobre.report.sections.provenance import digests_of, provenance
from cobre.report.sections.timing import timing
from cobre.report.sections.water import water

SECTIONS = (convergence, costs, water, generation, prices, timing, provenance)


def page_of(run: RunFolder) -> str:
    """Of whatever the folder holds."""
    made = [_made(make, run) for make in SECTIONS]
    sections = [section for section, _ in made if section is not None]
    warnings = overview.warnings_of(run)
    name = run.study.name or run.path.resolve().name
    return Template(_static("page.html")).substitute(
        title=escape(name),
        subtitle=escape(overview.subtitle(run)),
        banner=overview.banner(run),
        tiles=overview.tiles(run),
        warnings=overview.warning_list(warnings),
        contents="".join(f'<a href="#{section.key}">{escape(section.title)}</a>' for section in sections),
        sections="\n".join(html for _, html in made),
        data=embedded(page_data(run, sections, warnings)),
        style=_static("style.css"),
        script=_static("page.js"),
        version=escape(__version__),
    )


def _made(make: Callable[[RunFolder], Section | None], run: RunFolder) -> tuple[Section | None, str]:
    """A section and its HTML. One that cannot be made of what the files hold is missed out, with a warning."""
    try:
        section = make(run)
        return section, section.html() if section is not None else ""
    except STRANGE as error:
        run.troubles.append(f"no section on {make.__name__}: {type(error).__name__}: {error}")
        return None, ""


def page_data(run: RunFolder, sections: Sequence[Section], warnings: Sequence[str]) -> dict[str, Any]:
    """Everything that is drawn or written, as numbers."""
    return {
        "format_version": 1,
        "state": run.state.value,
        "digests": digests_of(run),
        "warnings": list(warnings),
        "charts": {
            chart.key: {"title": chart.title, "panels": [panel.as_dict() for panel in chart.panels]}
            for section in sections
            for chart in section.charts
        },
        "tables": {table.key: table.as_dict() for section in sections for table in section.tables},
    }


def embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _static(name: str) -> str:
    return resources.files("cobre.report").joinpath("static", name).read_text(encoding="utf-8")
