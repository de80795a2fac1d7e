"""The prepared-case cache: studies for later runs of a case, keyed by a digest of files, settings and program.

Any change leads to another entry; a damaged entry is ignored. The folder is COBRE_CACHE_DIR, else `cobre` below
XDG_CACHE_HOME or ~/.cache; the least recently used entries are removed when it grows too large. Ranks and runs that
write at the same time write the same content under temporary names, and rename it.
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

import numpy as np

import cobre
from cobre.errors import ValidationError
from cobre.io.storage.atomic import WriteError
from cobre.io.storage.record_file import RecordFileError, read_records, write_records
from cobre.records import dataclass
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.preparation.fingerprint import feed_bytes, input_files
from cobre.study.preparation.study_solver import MAX_DENSE_ROWS_VARIABLE
from cobre.study.requests import CaseRequest
from cobre.study.unchecked_config import UncheckedConfig, with_config_document

FOLDER_VARIABLE = "COBRE_CACHE_DIR"
MIN_SECONDS_VARIABLE = "COBRE_CACHE_MIN_SECS"
OFF = ("", "off", "none", "0")
MAX_BYTES = 1 << 30
"""All entries together. One of the largest official decks has 60 MB."""

MIN_SECONDS = 0.25
"""CPU seconds of a preparation that is worth a file."""

SUFFIX = ".study"
FORMAT = 3


@dataclass(frozen=True, slots=True)
class CachedStudy:
    """A prepared study with its warnings and digests. key: that of the entry, because files can be renamed.

    case_digest: the digest of the case in its fingerprint.
    """

    key: str
    study: PreparedStudy
    warnings: tuple[str, ...]
    digest: str
    case_digest: str


@dataclass(frozen=True, slots=True)
class StudyCache:
    """The cache entry of a request. key: digest of everything that the prepared study depends on."""

    folder: Path
    key: str
    request: CaseRequest

    @classmethod
    def of(cls, request: CaseRequest) -> "StudyCache | None":
        """Return the entry for a request; None for a case in memory, a boundary policy, or without a cache."""
        folder = cache_folder()
        if folder is None or not request.use_cache or not isinstance(request.case, Path):
            return None
        config = UncheckedConfig.of(request)
        if not isinstance(config.content, dict) or config.has_boundary:
            return None  # files outside the case, or an invalid case
        try:
            return cls(folder, _key(request), request)
        except (OSError, TypeError, ValueError):  # errors of the case are reported where it is read
            return None

    @property
    def path(self) -> Path:
        """The file of the entry."""
        return self.folder / f"{self.key}{SUFFIX}"

    def load(self, warn: Callable[[str], None]) -> CachedStudy | None:
        """Return the cached study; None if there is none or it is damaged, which is reported by `warn`."""
        try:
            entry = read_records(self.path)
            if not isinstance(entry, CachedStudy):
                raise RecordFileError(f"{self.path} is not a prepared study")
            if entry.key != self.key:
                raise RecordFileError(f"{self.path} belongs to another case, or to other settings")
        except FileNotFoundError:
            return None
        except (RecordFileError, OSError) as error:
            warn(f"the entry in the prepared-case cache is unusable and will be rebuilt: {error}")
            with suppress(OSError):
                self.path.unlink()
            return None
        with suppress(OSError):
            os.utime(self.path)
        entry.study.__dict__["digest"] = entry.digest  # so that it need not be computed again
        return entry

    def save(self, entry: CachedStudy) -> None:
        """Write the entry unless a file of the case has changed since; errors of writing are ignored."""
        with suppress(OSError, WriteError, RecordFileError):
            if _key(self.request) != self.key or self.path.exists():
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_records(self.path, entry)
            evict_old_entries(self.folder)


def cache_folder() -> Path | None:
    """Return the folder of all entries; None if the environment turns the cache off."""
    value = os.environ.get(FOLDER_VARIABLE)
    if value is not None:
        return None if value.strip().lower() in OFF else Path(value).expanduser()
    home = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home
        return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "cobre"
    return None


def min_seconds() -> float:
    """Return the CPU seconds of a preparation that is worth caching. Raises ValidationError for a wrong variable."""
    value = os.environ.get(MIN_SECONDS_VARIABLE)
    if not value:
        return MIN_SECONDS
    with suppress(ValueError):
        if (seconds := float(value)) >= 0:
            return seconds
    raise ValidationError(f"{MIN_SECONDS_VARIABLE} is {value!r}: expected a number of seconds, such as 0.25")


def evict_old_entries(folder: Path, max_bytes: int = MAX_BYTES) -> None:
    """Remove the least recently used entries until the rest fits, and temporary files of killed processes."""
    entries = []
    for path in folder.iterdir():
        with suppress(OSError):
            status = path.stat()
            if path.suffix == SUFFIX:
                entries.append((status.st_mtime, status.st_size, path))
            elif path.name.endswith(".partial") and status.st_mtime < time.time() - 3600.0:
                path.unlink()
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= max_bytes:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


def _key(request: CaseRequest) -> str:
    """Return a SHA-256 of the program, the settings and every input file. Raises OSError."""
    assert isinstance(request.case, Path)  # noqa: S101
    folder = request.case.resolve()
    digest = hashlib.sha256()
    settings = [FORMAT, *_program(), str(folder), request.overrides, os.environ.get(MAX_DENSE_ROWS_VARIABLE)]
    feed_bytes(digest, json.dumps(settings, sort_keys=True).encode())
    config = with_config_document(request).config  # read once, before the other files
    feed_bytes(digest, b"" if config is None or config.document is None else config.document.text.encode())
    for name, path in input_files(folder):
        feed_bytes(digest, name.encode())
        feed_bytes(digest, path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _program() -> tuple[str, ...]:
    """Return versions, and sizes and times of this package's files, since a checkout changes between versions."""
    digest = hashlib.sha256()
    native = sys.modules["cobre._native"].__file__
    folders = [Path(entry) for entry in cobre.__path__]
    paths = [*sorted(path for folder in folders for path in _modules(folder)), Path(str(native))]
    for path in paths:
        status = path.stat()
        feed_bytes(digest, f"{path} {status.st_size} {status.st_mtime_ns}".encode())
    return cobre.__version__, np.__version__, platform.python_version(), platform.machine(), digest.hexdigest()


def _modules(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(parent, name) for name in names if name.endswith(".py"))
