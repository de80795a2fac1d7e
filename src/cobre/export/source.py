"""The input of an export: the output directory of a finished run, and its case."""

from functools import cached_property
from pathlib import Path
from typing import Any

from cobre.compat.run_metadata import training_facts
from cobre.core.case import Case
from cobre.errors import CobreError
from cobre.io.case import load_case
from cobre.io.file_names import CONFIG_FILE
from cobre.records import dataclass
from cobre.runs.stored import logged_run, stored_study
from cobre.runs.trained_case import case_of_run
from cobre.runs.view import RunView
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.study.preparation.prepare import prepare

_CLASSES = ("hydros", "thermals", "buses", "lines")


class ExportError(CobreError):
    """A run that cannot be exported; the message says what is missing, and what to do."""


@dataclass(frozen=True)
class RunSource:
    """A run to export. `case_folder`: the directory of its case, if it was moved."""

    folder: Path
    case_folder: Path | None = None

    @cached_property
    def study(self) -> dict[str, Any]:
        """The content of study.json."""
        return stored_study(self.folder)

    @cached_property
    def log(self) -> RunView:
        """The run as its events.jsonl describes it."""
        return logged_run(self.folder)

    @cached_property
    def training(self) -> dict[str, Any]:
        """The facts about training that cobre-python stores; raises ExportError for unfinished training."""
        facts = training_facts(self.folder) if self.study else None
        if facts is None:
            raise ExportError(f"{self.folder} has no finished training: export a finished run")
        return facts

    @cached_property
    def case(self) -> Case:
        """The case of the run; raises ExportError if it is missing or has other stages or entities."""
        named = self.case_folder or Path(self.study.get("case") or "")
        if not (named / CONFIG_FILE).exists():
            where = (
                f"{named} is not a case directory" if str(named) != "." else "the run was not started from a directory"
            )
            raise ExportError(f"the case of {self.folder} is needed, and {where}: give its directory with --case")
        case = load_case(named, self.study.get("config_overrides") or None)
        _check_same_study(named, case, self.study)
        return case

    @cached_property
    def prepared(self) -> PreparedStudy:
        """The problem that was trained; raises ExportError if the case now describes another one."""
        found = prepare(self.case)
        trained = case_of_run(self.folder)
        if trained is not None and self.study.get("problem", found.digest) != found.digest:
            changes = trained.changes_in_words(self.case_folder or trained.folder)
            raise ExportError(
                f"the case of {self.folder} has changed since the run ({changes}): restore it, or give the "
                "original with --case"
            )
        return found


def _check_same_study(folder: Path, case: Case, study: dict[str, Any]) -> None:
    """Raise ExportError if the case has other stages or entities than the run."""
    stages = [{"id": stage.id, "start_date": stage.start_date.isoformat()} for stage in case.horizon.stages]
    known = [{name: stage.get(name) for name in ("id", "start_date")} for stage in study.get("stages", ())]
    if stages != known:
        raise ExportError(f"{folder} has different stages: give the case of the run with --case")
    for kind in _CLASSES:
        here = [(entity.id, entity.name) for entity in getattr(case.system, kind)]
        there = [(entity.get("id"), entity.get("name")) for entity in study.get("entities", {}).get(kind, ())]
        if here != there:
            raise ExportError(f"{folder} has different {kind}: give the case of the run with --case")
