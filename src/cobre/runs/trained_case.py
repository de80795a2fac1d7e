"""The case that a run was made of, and which of its files have changed since. study.json keeps their digests."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from cobre import __version__
from cobre.io.case_folder.case_files import differing_files, file_digests
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.runs.files import STUDY_FILE

MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class TrainedCase:
    """The case that a run was made of. files: digests by name; none for a case that was in memory.

    overrides: settings that replaced those of its config.json.
    """

    folder: Path | None
    files: Mapping[str, str]
    version: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def changes(self, case: Path | None) -> list[str]:
        """Files of a case directory that are not what they were; none where that is not known."""
        now = {} if case is None else file_digests(case)
        return differing_files(self.files, now) if self.files and now else []

    def changes_in_words(self, case: Path | None) -> str:
        """Why the same run would be another one now. case: the directory at hand; None for a case in memory."""
        if not self.files:
            was_in_memory = "; its case was in memory" if self.folder is None else ""
            return f"the run recorded no files to compare{was_in_memory}"
        if case is None:
            return "the case at hand is in memory, without files to compare"
        if not file_digests(case):
            return f"{case} has no files of a case"
        if changed := self.changes(case):
            return named_files(changed)
        if self.version != __version__:
            return f"the files are the same; the run was made with cobre {self.version}, and this is {__version__}"
        return "the files are the same; a setting or a file outside the case must have changed"


def changes_since(trained: TrainedCase | None, case: Path | None) -> str:
    """Which files of a case have changed since a run; empty where none has, or that is not known."""
    return named_files(changed) if trained is not None and (changed := trained.changes(case)) else ""


def changed_case(run: Path) -> str | None:
    """That the case of a run has changed since, in words; None where it has not, or that is not known."""
    trained = case_of_run(run)
    changes = "" if trained is None else changes_since(trained, trained.folder)
    return f"{trained.folder} has changed since this run ({changes})" if trained is not None and changes else None


def named_files(names: list[str]) -> str:
    """File names for a message: the first few, and how many more there are."""
    shown, more = ", ".join(names[:MAX_NAMED]), len(names) - MAX_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{'changed files' if len(names) > 1 else 'changed file'}: {shown}{rest}"


def case_of_run(run: Path) -> TrainedCase | None:
    """What study.json says; None where there is none that can be read."""
    try:
        facts = read_stored_object(run / STUDY_FILE)
    except (OSError, ValueError):
        return None
    named, files, overrides = (facts.get(name) for name in ("case", "case_files", "config_overrides"))
    return TrainedCase(
        folder=Path(named) if isinstance(named, str) and named else None,
        files=files if isinstance(files, dict) else {},
        version=str(facts.get("versions", {}).get("cobre", "")),
        overrides=overrides if isinstance(overrides, dict) else {},
    )
