"""The folders that the server may use, and the types of the arguments of its tools."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from cobre.core.file_names import CONFIG_FILE, STAGES_FILE
from cobre.errors import CobreError
from cobre.io.decoding.json_documents import read_document
from cobre.io.findings import Findings
from cobre.io.input_files.config import read_config, with_paths_from
from cobre.limits import MAX_COUNT, MAX_THREADS
from cobre.records import dataclass
from cobre.runs.files import is_run_folder


class RefusedPathError(CobreError):
    """A path is outside the folders of the server, or does not exist."""


class Roots:
    """The folders that a server may use. Paths are checked after `..` and symbolic links are resolved."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        if not self.folders:
            raise ValueError("the server needs at least one folder")
        for folder in self.folders:
            if not folder.is_dir():
                raise RefusedPathError(f"{folder} is not a folder")
        self._by_name = dict(_root_names(self.folders))

    def resolve(self, text: str) -> Path:
        """Return a path given by a client, existing or not; relative paths start in the first root."""
        if not text or "\0" in text:
            raise RefusedPathError("the path is empty or contains a zero byte")
        try:
            path = (self.folders[0] / text).resolve()
        except (OSError, RuntimeError) as error:  # symlink loop
            raise RefusedPathError(f"{text} cannot be resolved: {error}") from error
        return self.check(path, text)

    def check(self, path: Path, text: str = "") -> Path:
        """Return the resolved path; raise RefusedPathError if it is outside of the roots."""
        resolved = path.resolve()
        if not any(resolved.is_relative_to(folder) for folder in self.folders):
            inside = ", ".join(map(str, self.folders))
            raise RefusedPathError(f"{text or path} is outside the folders that this server may use: {inside}")
        return resolved

    def folder(self, text: str) -> Path:
        """Return an existing folder inside the roots, without a link in it that leads outside."""
        path = self.resolve(text)
        if not path.is_dir():
            problem = "is a file, not a folder" if path.exists() else "does not exist"
            raise RefusedPathError(f"{text} {problem}")
        for link in links_in(path):
            self.check(link)
        return path

    def name_of(self, path: Path) -> tuple[str, str]:
        """Return the name of the root that holds a path, and the path within it; `.` is the root itself."""
        name, root = next(named_root for named_root in self._by_name.items() if path.is_relative_to(named_root[1]))
        return name, path.relative_to(root).as_posix()

    def named(self, name: str, relative: str) -> Path:
        """Return the folder for a root name and relative path, the inverse of `name_of`."""
        if name not in self._by_name:
            raise RefusedPathError(f"there is no folder {name!r}; there are {', '.join(self._by_name)}")
        return self.folder(str(self._by_name[name] / relative))


def links_in(folder: Path) -> Iterator[Path]:
    """Yield all symbolic links below a folder."""
    for directory, folders, files in os.walk(folder):
        yield from (Path(directory, name) for name in (*folders, *files) if Path(directory, name).is_symlink())


def _root_names(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield roots by the last part of their path, numbered if it is not unique."""
    used_names: set[str] = set()
    for folder in folders:
        base = folder.name or "root"
        name, number = base, 1
        while name in used_names:
            number += 1
            name = f"{base}-{number}"
        used_names.add(name)
        yield name, folder


# Contents of the server's folders: cases, and the output directories of runs.

MAX_DEPTH = 6
MAX_LISTED = 500
CASE_FILES = {CONFIG_FILE, STAGES_FILE}


@dataclass
class CasesAndRuns:
    """Folders of cases and runs, in the order of their names. is_complete: all fitted within `MAX_LISTED`."""

    cases: list[Path] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)
    is_complete: bool = True


def find_cases_and_runs(roots: Roots) -> CasesAndRuns:
    """List cases and runs up to `MAX_DEPTH` levels deep, without following links; hidden folders are left out."""
    content = CasesAndRuns()
    for folder, files in _folders(roots):
        if len(content.cases) + len(content.runs) >= MAX_LISTED:
            content.is_complete = False
            break
        if files >= CASE_FILES:
            content.cases.append(folder)
        if is_run_folder(folder):
            content.runs.append(folder)
    return content


def _folders(roots: Roots) -> Iterator[tuple[Path, set[str]]]:
    for root in roots.folders:
        for directory, folders, files in os.walk(root):
            depth = len(Path(directory).relative_to(root).parts)
            folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < MAX_DEPTH else []
            if is_run_folder(Path(directory)):
                folders.clear()  # its subfolders belong to the run
            yield Path(directory), set(files)


# Types of the arguments of tools, with the limits and descriptions that clients see.

CasePath = Annotated[str, Field(description="Folder of a case, absolute or relative to the server's first folder.")]

JobPath = Annotated[str, Field(description="The `job` that start_study returned, or the output folder of any run.")]

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]

Threads = Annotated[int, Field(ge=1, le=MAX_THREADS)]

Texts = list[str] | str | None  # a single text stands for a list of one

Numbers = list[int] | int | None


class CaseChange(BaseModel):
    """A change of a JSON file of a case, as JSON Patch (RFC 6902) has it."""

    file: Annotated[str, Field(description="For example system/thermals.json.")]
    op: Literal["add", "replace", "remove"]
    path: Annotated[str, Field(description="For example /thermals/0/cost_per_mwh; /thermals/- appends to a list.")]
    value: Any = None


# Paths in config.json of a case must be inside the server's folders, too.


def check_case_paths(roots: Roots, case: Path, output: Path | None = None) -> None:
    """Raise RefusedPathError if config.json reads or writes a policy outside the roots; ignore an unreadable file."""
    findings = Findings()
    config = read_config(read_document(case, CONFIG_FILE, findings), None, findings)
    if config is None:
        return
    policy = with_paths_from(case, config).policy
    if policy.boundary is not None:
        roots.check(Path(policy.boundary.path), f"policy.boundary.path of {case / CONFIG_FILE}")
    if output is not None:
        roots.check(output / policy.path, f"policy.path of {case / CONFIG_FILE} ({policy.path})")
