"""A study that is ready to be trained or simulated, the same on all ranks."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from cobre.comm import Backend
from cobre.core.case import Case
from cobre.core.steps import Report, no_report
from cobre.io.config.document import ConfigDocument
from cobre.io.findings.grouped_findings import lines_of
from cobre.records import dataclass
from cobre.runs.events import EventListener, new_event
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.sddp.ranks.sharing import share
from cobre.solver.batches import LpSolver
from cobre.study.preparation.fingerprint import Fingerprint, agree_on
from cobre.study.preparation.preparation_progress import PreparationProgress
from cobre.study.preparation.study_cache import CachedStudy, StudyCache, min_seconds
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import CaseRequest, Overrides


@dataclass(frozen=True, slots=True)
class ReadyStudy:
    """A study that all ranks agree upon.

    folder: the directory of its case; None for a case in memory.
    shared_bytes: what the ranks of a node hold once; saved_bytes: what that saves.
    cache: where to keep what was prepared; None: nowhere, or it came from there.
    """

    study: PreparedStudy
    solver: LpSolver
    fingerprint: Fingerprint
    warnings: tuple[str, ...] = ()
    shared_bytes: int = 0
    saved_bytes: int = 0
    folder: Path | None = None
    cache: StudyCache | None = None

    @classmethod
    def of(cls, study: PreparedStudy, solver: LpSolver) -> Self:
        """A study that this process prepared for itself."""
        return cls(study, solver, Fingerprint.of(study, solver))

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

    def build() -> tuple[PreparedStudy, tuple[str, ...], str]:
        kept = None if cache is None else cache.load(lambda text: emit(new_event("warning", message=text)))
        if kept is not None:
            return kept.study, kept.warnings, kept.case_digest
        from cobre.study.preparation.prepare import prepare

        began = time.process_time()
        case, warnings = as_case(request.case, request.overrides, request.config, report)
        emit(new_event("phase", name="building"))
        study = prepare(case, report)
        if cache is not None and comm.rank == 0 and time.process_time() - began >= min_seconds():
            pending.append(cache)
        return study, (*warnings, *study.notes), ""

    with _without_collection():
        shared = share(comm, build)
    study, warnings, known_digest = shared.value
    if isinstance(request.case, Case):  # which the caller keeps anyway
        study = replace(study, case=request.case)
    for warning in warnings:
        emit(new_event("warning", message=warning))
    solver = make_solver(study, request.threads, report)
    fingerprint = Fingerprint.of(study, solver, known_digest)
    agree_on(comm, fingerprint)
    folder = request.case if isinstance(request.case, Path) else None
    ready = ReadyStudy(study, solver, fingerprint, warnings, shared.shared_bytes, shared.saved_bytes, folder)
    return replace(ready, cache=pending[0]) if pending else ready


@contextmanager
def _without_collection() -> Iterator[None]:
    """Search for no garbage while a study is read and built: nearly all that is made stays."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


def as_case(
    case: Case | Path,
    overrides: Overrides | None,
    config: ConfigDocument | None = None,
    report: Report = no_report,
) -> tuple[Case, tuple[str, ...]]:
    """A case that was given, or the one in a directory, with its warnings. config: config.json, if already read."""
    if isinstance(case, Case):
        if overrides:
            raise ValueError(
                "config_overrides apply when a case is read: give the case directory, or pass them to load_case"
            )
        return case, ()
    from cobre.io.case import load_case_with_problems

    loaded, problems = load_case_with_problems(case, overrides, config, report)
    return loaded, tuple(lines_of(problems.warnings))
