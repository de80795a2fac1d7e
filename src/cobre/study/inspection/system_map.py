"""`cobre.system_map`: the map of a case, for notebooks."""

from pathlib import Path
from typing import TYPE_CHECKING

from cobre.core.case import Case

if TYPE_CHECKING:
    from cobre.report.system_map import SystemMap


def system_map(case: "Case | str | Path") -> "SystemMap | None":
    """Buses, lines and cascades of a case as a picture (SVG) that a notebook shows; `save(path)` writes it to a file.

    case: a case, or its directory. None when it has neither hydro plants nor lines. Raises `InvalidCaseError`.

        cobre.system_map("examples/large").save("map.svg")
    """
    from cobre.io.case import load_case
    from cobre.io.saving.case_writer import canonical_case
    from cobre.report.study_facts import StudyFacts
    from cobre.report.system_map import system_map as drawn
    from cobre.study.results.script_results import stages_and_entities

    found = canonical_case(case) if isinstance(case, Case) else load_case(Path(case))
    return drawn(StudyFacts(stages_and_entities(found)))
