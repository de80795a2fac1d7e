"""The case that a run trained on, as study.json records it, and the files that have changed since."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from cobre import __version__
from cobre.core.file_names import STUDY_FILE
from cobre.io.case_folder.case_files import differing_files, file_digests
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass

MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class TrainedCase:
    """The case that a run trained on. files: digests by name; empty for a case in memory.

    overrides: settings that replaced those of its config.json.
    """

    folder: Path | None
    files: Mapping[str, str]
    version: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def changes(self, case: Path | None) -> list[str]:
        """Return the files of a case directory that have changed; empty if unknown."""
        digests = {} if case is None else file_digests(case)
        return differing_files(self.files, digests) if self.files and digests else []

    def changes_in_words(self, case: Path | None) -> str:
        """Explain why the run would give another problem now. case: its directory now; None for a case in memory."""
        if not self.files:
            was_in_memory = "; its case was in memory" if self.folder is None else ""
            return f"the run recorded no files to compare{was_in_memory}"
        if case is None:
            return "the present case is in memory, without files to compare"
        if not file_digests(case):
            return f"{case} has no files of a case"
        if changed := self.changes(case):
            return named_files(changed)
        if self.version != __version__:
            return f"the files are the same; the run was made with cobre {self.version}, and this is {__version__}"
        return "the files are the same; a setting or a file outside the case must have changed"


def changes_since(trained: TrainedCase | None, case: Path | None) -> str:
    """Name the files of a case that have changed since a run; empty if none has or if that is unknown."""
    return named_files(changed) if trained is not None and (changed := trained.changes(case)) else ""


def changed_case(run: Path) -> str | None:
    """Describe how the case of a run has changed since; None if it has not or if that is unknown."""
    trained = case_of_run(run)
    changes = "" if trained is None else changes_since(trained, trained.folder)
    return f"{trained.folder} has changed since this run ({changes})" if trained is not None and changes else None


def named_files(names: list[str]) -> str:
    """List file names for a message: the first few, and how many more there are."""
    listed, more = ", ".join(names[:MAX_NAMED]), len(names) - MAX_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{'changed files' if len(names) > 1 else 'changed file'}: {listed}{rest}"


def case_of_run(run: Path) -> TrainedCase | None:
    """Read the case of a run from its study.json; None if that cannot be read."""
    try:
        facts = read_stored_object(run / STUDY_FILE)
    except (OSError, ValueError):
        return None
    case_path, files, overrides, versions = (
        facts.get(name) for name in ("case", "case_files", "config_overrides", "versions")
    )
    return TrainedCase(
        folder=Path(case_path) if isinstance(case_path, str) and case_path else None,
        files=files if isinstance(files, dict) else {},
        version=str(versions.get("cobre", "")) if isinstance(versions, dict) else "",
        overrides=overrides if isinstance(overrides, dict) else {},
    )
