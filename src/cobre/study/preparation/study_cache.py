"""What preparing a case directory gave, kept for the next run of the same case: found by content, and checked.

An entry is found by a digest of the bytes of all input files, of overrides, and of the program itself: whatever
changes, the entry is another one. A damaged entry counts as none. Entries of this user lie in COBRE_CACHE_DIR, or
else in `cobre` below XDG_CACHE_HOME or ~/.cache; the least recently used go when all of them are too large. Ranks and
runs that write at the same time write the same content under names of their own, and rename it.
"""

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import cobre
from cobre.io.file_names import CONFIG_FILE
from cobre.io.storage.atomic import WriteError
from cobre.io.storage.record_file import RecordFileError, read_records, write_records
from cobre.records import dataclass
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.study.config_outline import ConfigOutline, with_config_document
from cobre.study.preparation.study_solver import MAX_DENSE_ROWS_VARIABLE
from cobre.study.requests import CaseRequest

FOLDER_VARIABLE = "COBRE_CACHE_DIR"
MIN_SECONDS_VARIABLE = "COBRE_CACHE_MIN_SECS"
OFF = ("", "off", "none", "0")
MAX_BYTES = 1 << 30
"""All entries together. One of the largest official decks has 60 MB."""
MIN_SECONDS = 0.5
"""CPU seconds that preparing must take before an entry is kept: less is not worth a file."""
ENDING = ".study"
FORMAT = 2
_FOLDERS = ("", "system", "scenarios", "constraints")
_ENDINGS = (".json", ".parquet")


@dataclass(frozen=True, slots=True)
class CachedStudy:
    """A prepared study with its warnings, and the digest of its case as the fingerprint has it.

    key: that of the entry, because a file may have been given another one's name.
    """

    key: str
    study: PreparedStudy
    warnings: tuple[str, ...]
    digest: str
    case_digest: str


@dataclass(frozen=True, slots=True)
class StudyCache:
    """The entry of one request. key: digest of everything that the prepared study depends on."""

    folder: Path
    key: str
    request: CaseRequest

    @classmethod
    def of(cls, request: CaseRequest) -> "StudyCache | None":
        """The entry for a request; None where it has none: a case in memory, a boundary policy, or no cache wanted."""
        folder = cache_folder()
        if folder is None or not request.use_cache or not isinstance(request.case, Path):
            return None
        outline = ConfigOutline.of(request)
        if not isinstance(outline.content, dict) or outline.has_boundary:
            return None  # files outside of the case, or a case that will be refused
        try:
            return cls(folder, _key(request), request)
        except (OSError, TypeError, ValueError):  # whoever reads the case says what is wrong with it
            return None

    @property
    def path(self) -> Path:
        """The file of the entry."""
        return self.folder / f"{self.key}{ENDING}"

    def load(self, say: Callable[[str], None]) -> CachedStudy | None:
        """What was kept; None where nothing was, or where it is damaged, which `say` is told."""
        try:
            found = read_records(self.path)
            if not isinstance(found, CachedStudy):
                raise RecordFileError(f"{self.path} is no prepared study")
            if found.key != self.key:
                raise RecordFileError(f"{self.path} is that of another case, or of other settings")
        except FileNotFoundError:
            return None
        except (RecordFileError, OSError) as error:
            say(f"the kept preparation of this case cannot be used, and the case is prepared again: {error}")
            with suppress(OSError):
                self.path.unlink()
            return None
        with suppress(OSError):
            os.utime(self.path)
        # Kept with the study, so that it need not be computed again.
        found.study.__dict__["digest"] = found.digest
        return found

    def save(self, entry: CachedStudy) -> None:
        """Keep what was prepared, unless a file has changed since; what cannot be written is not kept."""
        with suppress(OSError, WriteError, RecordFileError):
            if _key(self.request) != self.key or self.path.exists():
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_records(self.path, entry)
            make_room(self.folder)


def cache_folder() -> Path | None:
    """The folder of all entries; None where the environment wants none."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given is not None:
        return None if given.strip().lower() in OFF else Path(given).expanduser()
    home = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home
        return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "cobre"
    return None


def min_seconds() -> float:
    """CPU seconds from which on a preparation is kept."""
    try:
        return float(os.environ[MIN_SECONDS_VARIABLE])
    except (KeyError, ValueError):
        return MIN_SECONDS


def make_room(folder: Path, max_bytes: int = MAX_BYTES) -> None:
    """Remove the entries that were not used for longest until the rest fits, and what killed processes left."""
    found = []
    for path in folder.iterdir():
        with suppress(OSError):
            facts = path.stat()
            if path.suffix == ENDING:
                found.append((facts.st_mtime, facts.st_size, path))
            elif path.name.endswith(".partial") and facts.st_mtime < time.time() - 3600.0:
                path.unlink()
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= max_bytes:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


def _key(request: CaseRequest) -> str:
    """SHA-256 of the program, the settings and every input file. Raises OSError."""
    assert isinstance(request.case, Path)  # noqa: S101
    folder = request.case.resolve()
    digest = hashlib.sha256()
    settings = [FORMAT, *_program(), str(folder), request.overrides, os.environ.get(MAX_DENSE_ROWS_VARIABLE)]
    _feed(digest, json.dumps(settings, sort_keys=True).encode())
    config = with_config_document(request).config  # which may have been read before the other files
    _feed(digest, b"" if config is None or config.document is None else config.document.text.encode())
    for name, path in _inputs(folder):
        _feed(digest, name.encode())
        _feed(digest, path.read_bytes())
    return digest.hexdigest()


def _feed(digest: Any, part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)


def _inputs(folder: Path) -> Iterator[tuple[str, Path]]:
    """All files that reading a case looks at, those that it does not know included: they give warnings."""
    for part in _FOLDERS:
        directory = folder / part
        if directory.is_dir():
            found = sorted(path for path in directory.iterdir() if path.suffix in _ENDINGS and path.name != CONFIG_FILE)
            yield from ((f"{part}/{path.name}", path) for path in found)


@lru_cache(maxsize=1)
def _program() -> tuple[str, ...]:
    """Versions, and the files of this package: their sizes and times, since a checkout changes between versions."""
    digest = hashlib.sha256()
    native = sys.modules["cobre._native"].__file__
    folders = [Path(entry) for entry in cobre.__path__]
    paths = [*sorted(path for folder in folders for path in _modules(folder)), Path(str(native))]
    for path in paths:
        facts = path.stat()
        _feed(digest, f"{path} {facts.st_size} {facts.st_mtime_ns}".encode())
    return cobre.__version__, np.__version__, platform.python_version(), platform.machine(), digest.hexdigest()


def _modules(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(parent, name) for name in names if name.endswith(".py"))
