"""What lies in the server's folders: cases, and the output directories of runs."""

import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from cobre.io.file_names import CONFIG_FILE, STAGES_FILE
from cobre.mcp.roots import Roots
from cobre.records import dataclass
from cobre.runs.files import is_run_folder

MAX_DEPTH = 6
MAX_FOUND = 500
CASE_FILES = {CONFIG_FILE, STAGES_FILE}


@dataclass
class CasesAndRuns:
    """Folders, in the order of their names; is_complete: there were not too many to list them all."""

    cases: list[Path] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)
    is_complete: bool = True


def find_cases_and_runs(roots: Roots) -> CasesAndRuns:
    """Look through all folders; links are not followed, and what is hidden stays so."""
    found = CasesAndRuns()
    for folder, files in _folders(roots):
        if len(found.cases) + len(found.runs) >= MAX_FOUND:
            found.is_complete = False
            break
        if files >= CASE_FILES:
            found.cases.append(folder)
        if is_run_folder(folder):
            found.runs.append(folder)
    return found


def _folders(roots: Roots) -> Iterator[tuple[Path, set[str]]]:
    for root in roots.folders:
        for directory, folders, files in os.walk(root):
            depth = len(Path(directory).relative_to(root).parts)
            folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < MAX_DEPTH else []
            if is_run_folder(Path(directory)):
                folders.clear()  # what is inside belongs to the run
            yield Path(directory), set(files)
