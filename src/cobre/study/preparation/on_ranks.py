"""Preparation of a study on all ranks: read and build it once for each node, and check that all ranks agree."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import cobre
from cobre._native import narrow_heap, widen_heap
from cobre.comm import Backend
from cobre.core.case import Case
from cobre.core.preparation_steps import PreparationStep, StepReporter, no_report
from cobre.core.stopping import SimulationBased
from cobre.io.findings import lines_of
from cobre.io.input_files.config_overrides import ConfigDocument
from cobre.records import dataclass
from cobre.runs.events import EventListener, new_event
from cobre.sddp.plugins.user_plugins import NO_PLUGINS, PluginError, Plugins, sampler_for
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.ranks import build_once_per_node
from cobre.solver.batches import LpSolver
from cobre.study.arguments import refuse_overrides
from cobre.study.preparation.fingerprint import (
    FILES_DIFFER_FROM_LEADER,
    Fingerprint,
    agree_on,
    requested_files,
    requested_settings,
)
from cobre.study.preparation.study_cache import CachedStudy, StudyCache, min_seconds
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import CaseRequest, Overrides


@dataclass(frozen=True)  # without slots: the fingerprint is kept in the instance
class ReadyStudy:
    """A prepared study with its solver, the same on all ranks.

    folder: the directory of its case; None for a case in memory.
    shared_bytes: memory that the ranks of a node share; saved_bytes: what sharing saves.
    cache: the entry to save the study to; None: no cache, or the study came from it.
    plugins: those of the caller, or of config.json.
    known_digest: the digest of the case, where the cache had it.
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
        """Compared with other ranks and checkpoints. Computed on first use: 0.1 s at production size."""
        known = "" if self.plugins.identities else self.known_digest
        return Fingerprint.of(self.study, self.solver, known, self.plugins)

    def save_to_cache(self) -> None:
        """Save the study for the next run of this case; called when nothing waits for it."""
        if self.cache is not None:
            key = self.cache.key
            self.cache.save(CachedStudy(key, self.study, self.warnings, self.study.digest, self.fingerprint.case))


HEAP_BYTES = 1 << 27
"""What preparing one of the largest official decks takes of the heap."""


@contextmanager
def roomy_heap() -> Iterator[None]:
    """Prepare a study in huge pages, without returning memory to the system during that time."""
    widen_heap(HEAP_BYTES)
    try:
        yield
    finally:
        narrow_heap()


@dataclass(frozen=True, slots=True)
class _LeaderStudy:
    """A study as the leader of a node built it or loaded it from the cache.

    known_digest: the digest of the case if the cache had it. files: `requested_files` of the leader. preparation_s: CPU
    seconds; 0 from the cache.
    """

    study: PreparedStudy
    warnings: tuple[str, ...]
    files: str
    known_digest: str = ""
    preparation_s: float = 0.0


@roomy_heap()
def prepare_on_ranks(comm: Backend, request: CaseRequest, emit: EventListener) -> ReadyStudy:
    """Read the case and build its LPs, once for each node, or take both from the cache. Collective.

    Raises RankMismatchError on all ranks if they differ in case, settings or versions.
    """
    report = PreparationProgress(emit)
    cache = StudyCache.of(request) if comm.is_leader else None
    min_s = min_seconds() if comm.is_leader else 0.0  # before anything is read: raises for an invalid variable
    with cobre.without_collection():
        shared = build_once_per_node(comm, lambda: _load_or_build(request, cache, emit, report))
    leader, study = shared.value, shared.value.study
    if isinstance(request.case, Case):  # the caller keeps it anyway
        study = replace(study, case=request.case)
    for warning in leader.warnings:
        emit(new_event("warning", message=warning))
    plugins = (request.plugins or NO_PLUGINS).or_configured(study.case.config)
    has_plugins = bool(plugins.identities or plugins.changes_study)  # the cache holds studies and digests without them
    is_cacheable = comm.rank == 0 and leader.preparation_s >= min_s and not leader.known_digest and not has_plugins
    if plugins.changes_study:
        study = with_plugins(study, plugins)
    ready = ReadyStudy(
        study,
        make_solver(study, request.threads, report),
        leader.warnings,
        shared.shared_bytes,
        shared.saved_bytes,
        folder=request.case if isinstance(request.case, Path) else None,
        cache=cache if is_cacheable else None,
        plugins=plugins,
        known_digest=leader.known_digest,
    )
    if comm.size > 1:
        fingerprint, files = ready.fingerprint, requested_files(request)
        if leader.files and files and leader.files != files:
            fingerprint = replace(fingerprint, case=FILES_DIFFER_FROM_LEADER)
        agree_on(comm, fingerprint, requested_settings(request))
    return ready


def _load_or_build(
    request: CaseRequest, cache: StudyCache | None, emit: EventListener, report: StepReporter
) -> _LeaderStudy:
    cached = None if cache is None else cache.load(lambda text: emit(new_event("warning", message=text)))
    if cached is not None:
        return _LeaderStudy(cached.study, cached.warnings, requested_files(request), cached.case_digest)
    from cobre.study.preparation.prepare import prepare

    began = time.process_time()
    case, warnings = as_case(request.case, request.overrides, request.config, report)
    emit(new_event("phase", name="building"))
    study = prepare(case, report)
    preparation_s = time.process_time() - began
    return _LeaderStudy(study, (*warnings, *study.notes), requested_files(request), preparation_s=preparation_s)


def with_plugins(study: PreparedStudy, plugins: Plugins) -> PreparedStudy:
    """Return the study with the risk measure and the samplers of a user.

    Raises PluginError if it cannot be used with them: the rule `simulation` compares means, and the paths of a tree
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
    report: StepReporter = no_report,
) -> tuple[Case, tuple[str, ...]]:
    """Return a case, read if it is a directory, with its warnings. config: config.json, if already read."""
    if isinstance(case, Case):
        refuse_overrides(overrides)
        return case, ()
    from cobre.io.case import load_case_with_findings

    loaded, findings = load_case_with_findings(case, overrides, config, report)
    return loaded, tuple(lines_of(findings.warnings))


INTERVAL_S = 0.5
"""Shortest time between two events."""


class PreparationProgress:
    """An emitter of `preparation` events, usable as a `StepReporter`.

    Steps of small cases are over too soon to be read: an event is emitted when half a second has passed since the last.
    """

    def __init__(self, emit: EventListener) -> None:
        self._emit = emit
        self._began = time.monotonic()
        self._next = self._began + INTERVAL_S

    def __call__(self, step: PreparationStep, done: int = 0, total: int = 0) -> None:
        """Report a step; emit an event if one is due."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL_S
        parts = {"done": done, "total": total} if total else {}
        self._emit(new_event("preparation", step=step.value, elapsed_s=now - self._began, **parts))
