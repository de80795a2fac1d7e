"""The report of a run as one self-contained HTML page, and the frame of such pages, also for comparisons."""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from cobre import __version__
from cobre.core.file_names import REPORT_FILE
from cobre.io.storage.atomic import WriteError, write_file
from cobre.report.explorer_data import Explorer
from cobre.report.run_folder import MALFORMED_DATA, ReportError, ReportNotWrittenError, RunFolder, read_run
from cobre.report.section import Section
from cobre.report.sections import overview
from cobre.report.sections.convergence import convergence, timing
from cobre.report.sections.overview import digests_of, provenance
from cobre.report.sections.results import costs, explore, generation, prices, system, water
from cobre.runs.run_state import RunState

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
    """Render the page as HTML.

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
        data=script_json(data),
        style=text_of("vendor/uplot/uPlot.min.css") + "\n" + text_of("static/style.css"),
        script="\n".join(text_of(name) for name in (*CHART_SCRIPTS, *scripts, LAST_SCRIPT)),
        version=escape(__version__),
    )


def numbers_of(sections: Sequence[Section]) -> dict[str, Any]:
    """Return the data of all charts and tables, for `data` of `document`."""
    return {
        "charts": {chart.key: chart.as_dict() for section in sections for chart in section.charts},
        "tables": {table.key: table.as_dict() for section in sections for table in section.tables},
    }


def script_json(data: Mapping[str, Any]) -> str:
    """Return JSON without `<`, so that it cannot end the script element that contains it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def text_of(name: str) -> str:
    """Read the text of a file that ships with the report, such as a script or style sheet."""
    return resources.files("cobre.report").joinpath(name).read_text(encoding="utf-8")


SECTIONS = (convergence, costs, system, water, generation, prices, timing, provenance)
SCRIPTS = ("static/explorer.js", "static/map.js")

# Names of states in the data of the page, which other programs read; others are those of `RunState`.
STATES = {RunState.FINISHED: "complete", RunState.STOPPED: "complete", RunState.KILLED: "interrupted"}


def page_of(run: RunFolder, *, is_full: bool = False) -> str:
    """Render the report of a run folder as HTML. is_full: with all scenarios of every plant, bus and line."""
    explored, explorer_numbers = _explorer_section(run, is_full=is_full)
    rendered = [_render_section(make, run) for make in SECTIONS]
    rendered.insert(2, explored)
    sections = [section for section, _ in rendered if section is not None]
    warnings = overview.warnings_of(run)
    body = [overview.tiles(run), overview.warning_list(warnings), *(html for _, html in rendered)]
    return document(
        run.study.name or run.path.resolve().name,
        overview.subtitle(run),
        "\n".join(body),
        page_data(run, sections, warnings) | explorer_numbers,
        banner=overview.banner(run),
        contents=[(section.key, section.title) for section in sections],
        scripts=SCRIPTS,
    )


def _explorer_section(run: RunFolder, *, is_full: bool) -> tuple[tuple[Section | None, str], dict[str, Any]]:
    """Return the section on every plant, bus and line with its HTML, and its data."""
    if run.simulated is None:
        return (None, ""), {}
    explorer = Explorer(run.simulated, run.study, is_full)
    numbers: dict[str, Any] = {}

    def plants(run: RunFolder) -> Section | None:
        numbers["explorer"] = explorer.as_dict()
        return explore(run, explorer)

    rendered = _render_section(plants, run)
    return rendered, numbers if rendered[0] is not None else {}


def _render_section(make: Callable[[RunFolder], Section | None], run: RunFolder) -> tuple[Section | None, str]:
    """Return a section and its HTML. A section that fails on malformed data is left out, with a warning."""
    try:
        section = make(run)
        return section, section.html() if section is not None else ""
    except MALFORMED_DATA as error:
        run.file_errors.append(f"no section on {make.__name__}: {type(error).__name__}: {error}")
        return None, ""


def page_data(run: RunFolder, sections: Sequence[Section], warnings: Sequence[str]) -> dict[str, Any]:
    """Return the data of the page: state, digests, warnings, charts and tables."""
    return {
        "format_version": 2,
        "state": STATES.get(run.state, run.state.value),
        "digests": digests_of(run),
        "warnings": list(warnings),
        **numbers_of(sections),
    }


def write_report(
    folder: Path,
    target: Path | None = None,
    *,
    is_full: bool = False,
    on_damage: Callable[[Sequence[str]], None] | None = None,
) -> Path:
    """Write the report of an output directory to `target` (default: FOLDER/report.html); returns its path.

    The report of a running or interrupted run shows the results so far. A file is replaced completely or not at all.

    is_full: with every scenario of every plant, bus and line, which can take many megabytes. on_damage: called with a
    sentence for each damaged file of results, which the report leaves out and names.

    Raises ReportError if `folder` is not an output directory, ReportNotWrittenError if `target` cannot be written.
    """
    path = target or folder / REPORT_FILE
    try:
        run = read_run(folder)
        page = page_of(run, is_full=is_full)
    except MALFORMED_DATA as error:
        raise ReportError(f"{folder} contains malformed data: {type(error).__name__}: {error}") from error
    try:
        write_file(path, page.encode())
    except WriteError as error:
        raise ReportNotWrittenError(str(error)) from error
    if run.damaged and on_damage is not None:
        on_damage(run.damaged)
    return path
