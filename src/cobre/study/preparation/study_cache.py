"""Cache of prepared studies, for the next run of the same case: entries are found by content, and checked.

An entry is found by a digest of the bytes of all input files, of overrides, and of the program itself: any
change gives another entry. A damaged entry is ignored. Entries of this user are in COBRE_CACHE_DIR, or else in `cobre`
below XDG_CACHE_HOME or ~/.cache; the least recently used are removed when all of them are too large. Ranks and runs
that write at the same time write the same content under temporary names, and rename it.
"""

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import cobre
from cobre import __version__
from cobre.comm import Backend, Communicator
from cobre.core.case import Case, changed
from cobre.core.file_names import CONFIG_FILE
from cobre.core.steps import Report, Step, no_report
from cobre.core.stopping import IterationLimit, SimulationBased
from cobre.errors import CobreError, ValidationError
from cobre.io.findings import lines_of
from cobre.io.input_files.config_overrides import ConfigDocument
from cobre.io.storage.atomic import WriteError
from cobre.io.storage.record_file import RecordFileError, read_records, write_records
from cobre.records import dataclass
from cobre.runs.events import EventListener, new_event
from cobre.sddp.plugins.given import NO_PLUGINS, PluginError, Plugins, sampler_for
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.problem.problem import PreparedStudy, feed
from cobre.sddp.ranks import share
from cobre.solver.batches import LpSolver
from cobre.stochastic.sampling import NoiseSampler
from cobre.study.config_outline import ConfigOutline, with_config_document
from cobre.study.preparation.study_solver import MAX_DENSE_ROWS_VARIABLE, make_solver, max_dense_rows
from cobre.study.requests import CaseRequest, Overrides, with_iterations

FOLDER_VARIABLE = "COBRE_CACHE_DIR"
MIN_SECONDS_VARIABLE = "COBRE_CACHE_MIN_SECS"
OFF = ("", "off", "none", "0")
MAX_BYTES = 1 << 30

"""All entries together. One of the largest official decks has 60 MB."""

MIN_SECONDS = 0.5

"""CPU seconds that preparing must take before an entry is kept: less is not worth a file."""

ENDING = ".study"
FORMAT = 3
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
        """Return the entry for a request; None for a case in memory, a boundary policy, or without a cache."""
        folder = cache_folder()
        if folder is None or not request.use_cache or not isinstance(request.case, Path):
            return None
        outline = ConfigOutline.of(request)
        if not isinstance(outline.content, dict) or outline.has_boundary:
            return None  # files outside of the case, or a case that will be refused
        try:
            return cls(folder, _key(request), request)
        except (OSError, TypeError, ValueError):  # errors of the case are reported where it is read
            return None

    @property
    def path(self) -> Path:
        """The file of the entry."""
        return self.folder / f"{self.key}{ENDING}"

    def load(self, say: Callable[[str], None]) -> CachedStudy | None:
        """Return the kept study; None if there is none or it is damaged, which is reported to `say`."""
        try:
            found = read_records(self.path)
            if not isinstance(found, CachedStudy):
                raise RecordFileError(f"{self.path} is not a prepared study")
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
        """Keep the prepared study, unless a file of the case has changed since; errors of writing are ignored."""
        with suppress(OSError, WriteError, RecordFileError):
            if _key(self.request) != self.key or self.path.exists():
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_records(self.path, entry)
            make_room(self.folder)


def cache_folder() -> Path | None:
    """Return the folder of all entries; None where the environment wants none."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given is not None:
        return None if given.strip().lower() in OFF else Path(given).expanduser()
    home = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home
        return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "cobre"
    return None


def min_seconds() -> float:
    """Return the CPU seconds from which on a preparation is kept; raise ValidationError if the variable is wrong."""
    given = os.environ.get(MIN_SECONDS_VARIABLE)
    if not given:
        return MIN_SECONDS
    with suppress(ValueError):
        if (seconds := float(given)) >= 0:
            return seconds
    raise ValidationError(f"{MIN_SECONDS_VARIABLE} is {given!r}: expected a number of seconds, such as 0.5")


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
    """Return a SHA-256 of the program, the settings and every input file. Raises OSError."""
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
    """Yield all files that reading a case looks at, unknown ones included: they give warnings."""
    for part in _FOLDERS:
        directory = folder / part
        if directory.is_dir():
            found = sorted(path for path in directory.iterdir() if path.suffix in _ENDINGS and path.name != CONFIG_FILE)
            yield from ((f"{part}/{path.name}", path) for path in found)


@lru_cache(maxsize=1)
def _program() -> tuple[str, ...]:
    """Return versions, and sizes and times of this package's files, since a checkout changes between versions."""
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


# Fingerprints, which must be equal on all ranks and in a resumed run: of the programs and of the problem.

_PROBED_SCENARIOS = 4

# Of the section `training`: when to stop, whether to train at all, how to split work, and plug-ins, which take part by
# what they are. Every other field, and so a new one, takes part in the digest.
_WITHOUT_EFFECT_ON_BITS = {"stopping_rules", "stopping_mode", "enabled", "parallelism", "plugins"}

OTHER_FILES = "files other than those of its node's leader"
"""In place of the digest of a case: this rank named a directory with other files."""

_WORDS = {
    "cobre": "version of cobre",
    "solver": "LP solver",
    "numpy": "version of numpy",
    "case": "content of the case",
}


class RankMismatchError(CobreError):
    """Ranks that cannot work together: different versions, another case or other settings."""

    remedy = "give all ranks the same case, the same settings and the same versions of Cobre and its libraries"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versions, and a digest over everything in the case that decides about bits."""

    cobre: str
    solver: str
    numpy: str
    case: str

    @classmethod
    def of(
        cls, study: PreparedStudy, solver: LpSolver, known_digest: str = "", plugins: Plugins = NO_PLUGINS
    ) -> "Fingerprint":
        """Return the fingerprint of this process: its versions, and the study that it has prepared.

        known_digest: that of the case, where it was kept with the study.
        """
        return cls(__version__, solver.version, np.__version__, known_digest or case_digest(study, plugins))

    def differences(self, other: "Fingerprint") -> list[str]:
        """Describe what differs; this fingerprint's value comes first."""
        pairs = ((item.name, getattr(self, item.name), getattr(other, item.name)) for item in fields(self))
        return [f"{_WORDS[name]}: {_short(mine)} here, {_short(its)} there" for name, mine, its in pairs if mine != its]

    def as_dict(self) -> dict[str, str]:
        """Return plain values, for the file of a checkpoint."""
        return asdict(self)


def agree_on(comm: Communicator, own: Fingerprint, settings: str) -> None:
    """Raise on every rank unless all ranks have the fingerprint of rank 0, and its settings.

    settings: a digest of those of the call, of which the fingerprint leaves out some.
    """
    width = 512
    encoded = [value.encode()[:width].ljust(width, b"\0") for value in (*own.as_dict().values(), settings)]
    mine = np.frombuffer(b"".join(encoded), np.uint8)
    table = np.empty((comm.size, len(encoded), width), np.uint8)
    comm.allgatherv(mine, table.reshape(-1), [mine.size] * comm.size, label="versions and case")
    everyone = [[part.tobytes().rstrip(b"\0").decode() for part in row] for row in table]
    for rank, (*texts, its_settings) in enumerate(everyone):
        differences = Fingerprint(*texts).differences(Fingerprint(*everyone[0][:-1]))
        if its_settings != everyone[0][-1]:
            differences.append("settings of the call")
        if differences:
            raise RankMismatchError(
                f"rank {rank} differs from rank 0: {'; '.join(differences)} (here: rank {rank}, there: rank 0). "
                "Give all ranks the same versions, the same case and the same settings"
            )


def requested_settings(request: CaseRequest) -> str:
    """Return a digest of the settings of a call: its overrides, or the configuration of a case in memory."""
    digest = hashlib.sha256()
    if isinstance(request.case, Case):
        feed(digest, request.case.config)
    else:
        feed(digest, sorted((name, repr(value)) for name, value in (request.overrides or {}).items()))
    return digest.hexdigest()


def requested_files(request: CaseRequest) -> str:
    """Return a digest of config.json, and of names and sizes of the other input files.

    Empty for a case in memory, and where this rank does not see the folder: the leader of its node reads it.
    """
    if not isinstance(request.case, Path):
        return ""
    digest = hashlib.sha256()
    try:
        _feed(digest, (request.case / CONFIG_FILE).read_bytes())
        _feed(digest, repr([(name, path.stat().st_size) for name, path in _inputs(request.case)]).encode())
    except OSError:
        return ""
    return digest.hexdigest()


def case_digest(study: PreparedStudy, plugins: Plugins = NO_PLUGINS) -> str:
    """Return SHA-256 over the problem and the settings of training; not over when to stop or what to simulate."""
    digest = hashlib.sha256()
    problem, config = study.problem, study.case.config.training
    feed(digest, study.digest)
    deciding = [item.name for item in fields(config) if item.name not in _WITHOUT_EFFECT_ON_BITS]
    sections = (getattr(config, name) for name in deciding)
    # Without settings that have no effect.
    feed(digest, [study.case.format_version, *(getattr(section, "effective", section) for section in sections)])
    if used := plugins.identities:
        feed(digest, used)
    feed(digest, max_dense_rows())
    scenarios = range(min(_PROBED_SCENARIOS, config.forward_passes))
    for stage_number in range(problem.num_stages):
        feed(digest, _drawn(study.noise.training_sampler, scenarios, stage_number))
    return digest.hexdigest()


def _drawn(sampler: Sampler, scenarios: range, stage: int) -> Any:
    """Return what a sampler draws in the first iteration: the noise, or the openings of a user's sampler."""
    if isinstance(sampler, NoiseSampler) or not sampler.is_in_sample:
        return sampler.sample(1, scenarios, stage)
    return sampler.opening_indices(1, scenarios, stage)


def _short(value: str) -> str:
    return value if len(value) < 60 else f"{value[:12]}..."


# A study that is ready to be trained or simulated, the same on all ranks.


@dataclass(frozen=True)  # without slots: the fingerprint is kept in the instance
class ReadyStudy:
    """A study that all ranks agree upon.

    folder: the directory of its case; None for a case in memory.
    shared_bytes: what the ranks of a node hold once; saved_bytes: what that saves.
    cache: where to keep what was prepared; None: nowhere, or it came from there.
    plugins: of the caller, or of config.json.
    known_digest: that of the case, where it was kept with the study.
    """

    study: PreparedStudy
    solver: LpSolver
    warnings: tuple[str, ...] = ()
    shared_bytes: int = 0
    saved_bytes: int = 0
    folder: Path | None = None
    cache: StudyCache | None = None
    plugins: Plugins = NO_PLUGINS
    known_digest: str = ""

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What other ranks and checkpoints are compared with; computed when there are any: 0.1 s at production size."""
        known = "" if self.plugins.identities else self.known_digest
        return Fingerprint.of(self.study, self.solver, known, self.plugins)

    def keep(self) -> None:
        """Keep what was prepared for the next run, where that is worth it; called when nothing waits for it."""
        if self.cache is not None:
            key = self.cache.key
            self.cache.save(CachedStudy(key, self.study, self.warnings, self.study.digest, self.fingerprint.case))


def prepare_on_ranks(comm: Backend, request: CaseRequest, emit: EventListener) -> ReadyStudy:
    """Read the case and build its LPs, once for each node; make sure that all ranks have the same ones.

    On one machine, an earlier run of the same files may have kept them.
    """
    report = PreparationProgress(emit)
    cache = StudyCache.of(request) if comm.is_leader else None
    pending: list[StudyCache] = []

    def build() -> tuple[PreparedStudy, tuple[str, ...], str, str]:
        least_s = min_seconds()  # before anything is read: a wrong value is an error at once
        kept = None if cache is None else cache.load(lambda text: emit(new_event("warning", message=text)))
        if kept is not None:
            return kept.study, kept.warnings, kept.case_digest, requested_files(request)
        from cobre.study.preparation.prepare import prepare

        began = time.process_time()
        case, warnings = as_case(request.case, request.overrides, request.config, report)
        emit(new_event("phase", name="building"))
        study = prepare(case, report)
        if cache is not None and comm.rank == 0 and time.process_time() - began >= least_s:
            pending.append(cache)
        return study, (*warnings, *study.notes), "", requested_files(request)

    with cobre.without_collection():
        shared = share(comm, build)
    study, warnings, known_digest, files = shared.value
    if isinstance(request.case, Case):  # which the caller keeps anyway
        study = replace(study, case=request.case)
    for warning in warnings:
        emit(new_event("warning", message=warning))
    plugins = (request.plugins or NO_PLUGINS).or_configured(study.case.config)
    if plugins.identities or plugins.changes_study:
        pending.clear()  # what is kept, the study and the digest of the case, is without plug-ins
    if plugins.changes_study:
        study = with_plugins(study, plugins)
    solver = make_solver(study, request.threads, report)
    ready = ReadyStudy(
        study,
        solver,
        warnings,
        shared.shared_bytes,
        shared.saved_bytes,
        folder=request.case if isinstance(request.case, Path) else None,
        cache=pending[0] if pending else None,
        plugins=plugins,
        known_digest=known_digest,
    )
    if comm.size > 1:
        own, seen = ready.fingerprint, requested_files(request)
        if files and seen and files != seen:  # what was prepared is the case of this node's leader
            own = replace(own, case=OTHER_FILES)
        agree_on(comm, own, requested_settings(request))
    return ready


def with_plugins(study: PreparedStudy, plugins: Plugins) -> PreparedStudy:
    """Return the study under the risk measure and the samplers of a user.

    Raises PluginError where it cannot be used with them: the rule `simulation` compares means, and the paths of a tree
    are not drawn.
    """
    problem, noise = study.problem, study.noise
    if plugins.risk_measure is not None:
        rules = (*study.case.config.training.stopping_rules, *plugins.stopping_rules)
        if any(isinstance(rule, SimulationBased) for rule in rules):
            raise PluginError("the stopping rule `simulation` compares means: it cannot be used with a risk measure")
        problem = replace(problem, risk=tuple(plugins.risk_measure for _ in problem.risk))
    if problem.tree is not None and (plugins.sampler or plugins.simulation_sampler):
        raise PluginError("a sampler has no effect on enumerated selection, which uses every path of a tree")
    if plugins.sampler is not None:
        noise = replace(noise, training_sampler=sampler_for(plugins.sampler, noise))
    if plugins.simulation_sampler is not None:
        noise = replace(noise, simulation_sampler=sampler_for(plugins.simulation_sampler, noise))
    return replace(study, problem=problem, noise=noise)


def as_case(
    case: Case | Path,
    overrides: Overrides | None,
    config: ConfigDocument | None = None,
    report: Report = no_report,
) -> tuple[Case, tuple[str, ...]]:
    """Return a given case, or the one in a directory, with its warnings. config: config.json, if already read."""
    if isinstance(case, Case):
        if overrides:
            raise ValueError(
                "config_overrides apply when a case is read: give the case directory, or pass them to load_case"
            )
        return case, ()
    from cobre.io.case import load_case_with_findings

    loaded, findings = load_case_with_findings(case, overrides, config, report)
    return loaded, tuple(lines_of(findings.warnings))


# A case as scripts give it: a directory, or an object that may have been changed since it was read.


def case_and_overrides(
    case: Case | str | Path, overrides: Overrides | None, iterations: int | None = None
) -> tuple[Case | Path, Overrides | None]:
    """Return the case with another iteration limit; one that is an object is put in canonical order and checked.

    A directory is checked where it is read.
    """
    if not isinstance(case, Case):
        return Path(case), with_iterations(overrides, iterations)
    as_case(case, overrides)  # refuses overrides
    if iterations is not None:
        case = changed(case, {"config.training.stopping_rules": (IterationLimit(iterations),)})
    from cobre.io.saving.case_writer import canonical_case

    return canonical_case(case), None


# Progress before the first iteration: events that say what is being done, and how far it is. Steps of small cases are
# over too soon to be read, so an event is emitted when a step has begun or goes on and half a second has
# passed since the last one.

INTERVAL_S = 0.5
"""Shortest time between two events."""


class PreparationProgress:
    """Emits `preparation` events; an object of this class is a `Report`."""

    def __init__(self, emit: EventListener) -> None:
        self._emit = emit
        self._began = time.monotonic()
        self._next = self._began + INTERVAL_S

    def __call__(self, step: Step, done: int = 0, total: int = 0) -> None:
        """Take a step, and emit an event if one is due."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL_S
        parts = {"done": done, "total": total} if total else {}
        self._emit(new_event("preparation", step=step.value, elapsed_s=now - self._began, **parts))
