"""A study that is ready to be trained or simulated, the same on all ranks."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cobre.comm import Backend
from cobre.core.case import Case
from cobre.io.case import load_case_with_problems
from cobre.io.config.document import ConfigDocument
from cobre.io.findings.grouped_findings import lines_of
from cobre.runs.events import EventListener, new_event
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.sddp.ranks.sharing import share
from cobre.solver.batches import LpSolver
from cobre.study.preparation.fingerprint import Fingerprint, agree_on
from cobre.study.preparation.prepare import make_solver, prepare
from cobre.study.requests import CaseRequest, Overrides


@dataclass(frozen=True, slots=True)
class ReadyStudy:
    """A study that all ranks agree upon.

    folder: the directory of its case; None for a case in memory.
    shared_bytes: what the ranks of a node hold once; saved_bytes: what that saves.
    """

    study: PreparedStudy
    solver: LpSolver
    fingerprint: Fingerprint
    warnings: tuple[str, ...] = ()
    shared_bytes: int = 0
    saved_bytes: int = 0
    folder: Path | None = None

    @classmethod
    def of(cls, study: PreparedStudy, solver: LpSolver) -> Self:
        """A study that this process prepared for itself."""
        return cls(study, solver, Fingerprint.of(study, solver))


def prepare_on_ranks(comm: Backend, request: CaseRequest, emit: EventListener) -> ReadyStudy:
    """Read the case and build its LPs, once for each node; make sure that all ranks have the same ones."""

    def build() -> tuple[PreparedStudy, tuple[str, ...]]:
        case, warnings = as_case(request.case, request.overrides, request.config)
        emit(new_event("phase", name="building"))
        study = prepare(case)
        return study, (*warnings, *study.notes)

    shared = share(comm, build)
    study, warnings = shared.value
    if isinstance(request.case, Case):  # which the caller keeps anyway
        study = replace(study, case=request.case)
    for warning in warnings:
        emit(new_event("warning", message=warning))
    solver = make_solver(study, request.threads)
    fingerprint = Fingerprint.of(study, solver)
    agree_on(comm, fingerprint)
    folder = request.case if isinstance(request.case, Path) else None
    return ReadyStudy(study, solver, fingerprint, warnings, shared.shared_bytes, shared.saved_bytes, folder)


def as_case(
    case: Case | Path, overrides: Overrides | None, config: ConfigDocument | None = None
) -> tuple[Case, tuple[str, ...]]:
    """A case that was given, or the one in a directory, with its warnings. config: config.json, if already read."""
    if isinstance(case, Case):
        if overrides:
            raise ValueError(
                "config_overrides apply when a case is read: give the case directory, or pass them to load_case"
            )
        return case, ()
    loaded, problems = load_case_with_problems(case, overrides, config)
    return loaded, tuple(lines_of(problems.warnings))
