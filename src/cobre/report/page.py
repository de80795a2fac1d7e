"""The page of the report: its sections and their data."""

from collections.abc import Callable, Sequence
from typing import Any

from cobre.report.document import document, numbers_of
from cobre.report.errors import MALFORMED_DATA
from cobre.report.explorer_data import Explorer
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.sections import overview
from cobre.report.sections.convergence import convergence
from cobre.report.sections.costs import costs
from cobre.report.sections.explore import explore
from cobre.report.sections.generation import generation
from cobre.report.sections.prices import prices
from cobre.report.sections.provenance import digests_of, provenance
from cobre.report.sections.system import system
from cobre.report.sections.timing import timing
from cobre.report.sections.water import water
from cobre.runs.state import RunState

SECTIONS = (convergence, costs, system, water, generation, prices, timing, provenance)
SCRIPTS = ("static/explorer.js", "static/map.js")
# Names of states in the data of the page, which other programs read; they are older than `RunState`.
STATES = {RunState.FINISHED: "complete", RunState.STOPPED: "complete", RunState.KILLED: "interrupted"}


def page_of(run: RunFolder, *, is_full: bool = False) -> str:
    """The report of a run folder as HTML. is_full: with all scenarios of every plant, bus and line."""
    explored, numbers = _explored(run, is_full=is_full)
    made = [_made(make, run) for make in SECTIONS]
    made.insert(2, explored)
    sections = [section for section, _ in made if section is not None]
    warnings = overview.warnings_of(run)
    body = [overview.tiles(run), overview.warning_list(warnings), *(html for _, html in made)]
    return document(
        run.study.name or run.path.resolve().name,
        overview.subtitle(run),
        "\n".join(body),
        page_data(run, sections, warnings) | numbers,
        banner=overview.banner(run),
        contents=[(section.key, section.title) for section in sections],
        scripts=SCRIPTS,
    )


def _explored(run: RunFolder, *, is_full: bool) -> tuple[tuple[Section | None, str], dict[str, Any]]:
    """The section on every plant, bus and line with its HTML, and its data."""
    if run.simulated is None:
        return (None, ""), {}
    explorer = Explorer(run.simulated, run.study, is_full)
    numbers: dict[str, Any] = {}

    def plants(run: RunFolder) -> Section | None:
        numbers["explorer"] = explorer.as_dict()
        return explore(run, explorer)

    made = _made(plants, run)
    return made, numbers if made[0] is not None else {}


def _made(make: Callable[[RunFolder], Section | None], run: RunFolder) -> tuple[Section | None, str]:
    """A section and its HTML. A section that fails on malformed data is left out, with a warning."""
    try:
        section = make(run)
        return section, section.html() if section is not None else ""
    except MALFORMED_DATA as error:
        run.file_errors.append(f"no section on {make.__name__}: {type(error).__name__}: {error}")
        return None, ""


def page_data(run: RunFolder, sections: Sequence[Section], warnings: Sequence[str]) -> dict[str, Any]:
    """The data of the page: state, digests, warnings, charts and tables."""
    return {
        "format_version": 2,
        "state": STATES.get(run.state, run.state.value),
        "digests": digests_of(run),
        "warnings": list(warnings),
        **numbers_of(sections),
    }
