"""The harness: runs cases in worlds that are started as users start them, and compares with the oracle.

Many cases share a world, because starting one costs more than most cases. A case that raises breaks its world; the
cases after it get a new one.
"""

import faulthandler
import importlib
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Depth, Params, all_cases, find_case
from cobre.comm.testing.leaks import LeakCheck
from cobre.comm.testing.profiles import Profile, Variant
from cobre.comm.testing.report import Cell, Entry, JournalWriter, Outcome, Result, read_journal, read_stack

BATCH = 400
WORLD_LIMIT_S = 240.0
MAX_RESTARTS = 20


@dataclass(frozen=True, slots=True)
class CellSetting:
    """Common part of a set of cells: backend, variant and number of ranks."""

    profile: Profile
    variant: Variant
    size: int

    def ends_job(self, cell: Cell) -> bool:
        """Return whether this cell must end the processes of all ranks; such a cell has a separate world."""
        return self.size > 1 and any(map(cell.matches, self.variant.ends_job))

    def cell(self, case: str, params: Mapping[str, object] | None = None, wrapper: str = "") -> Cell:
        """Return a cell of the grid in this setting."""
        return Cell(self.profile.name, self.variant.name, self.size, case, params or {}, wrapper)


@dataclass(frozen=True, slots=True)
class WorldRun:
    """The results of a world: every rank's journal, stacks of ranks that hung, the starter's error, and leaks."""

    journals: Sequence[Mapping[int, Entry]]
    stacks: Sequence[str]
    problem: str
    leaks: Sequence[str]


def run_setting(setting: CellSetting, depth: Depth, pattern: str = "*") -> Iterator[Result]:
    """Run every cell of the grid that matches the pattern."""
    cells = [cell for cell in grid(setting, depth) if cell.matches(pattern)]
    skip_reasons = {name: find_case(name).skip_reason() for name in {cell.case for cell in cells}}
    for batch in _batches([cell for cell in cells if not skip_reasons[cell.case]]):
        yield from run_cells(setting, batch)
    yield from (Result(cell, Outcome.SKIPPED, skip_reasons[cell.case]) for cell in cells if skip_reasons[cell.case])


def grid(setting: CellSetting, depth: Depth) -> list[Cell]:
    """Return all cells of a setting, without those that its variant leaves out."""
    cells = [
        setting.cell(case.id, params) for case in all_cases().values() for params in case.grid(setting.size, depth)
    ]
    return [cell for cell in cells if not any(map(cell.matches, setting.variant.excluded_cases))]


def run_cells(setting: CellSetting, cells: Sequence[Cell]) -> Iterator[Result]:
    """Run these cells in one world, or in several if some of them break it."""
    for _ in range(MAX_RESTARTS):
        if not cells:
            return
        results, cells = run_world(setting, cells)
        yield from results
    yield from (Result(cell, Outcome.ERROR, "not run: too many worlds broke before it") for cell in cells)


def run_world(setting: CellSetting, cells: Sequence[Cell]) -> tuple[list[Result], Sequence[Cell]]:
    """Run these cells in one world; return the results, and the cells after the one that broke it."""
    run = _start_and_read(setting, cells)
    if setting.ends_job(cells[0]):
        return _judge_end_of_job(setting, run, cells[0]), cells[1:]
    completed = _count_completed(run, len(cells))
    results = [_judge(run, number, cell) for number, cell in enumerate(cells[:completed])]
    results += _judge_end(setting, run, all_completed=completed == len(cells))
    if completed < len(cells):
        results.append(Result(cells[completed], Outcome.ERROR, _stop_reason(run, completed)))
    return results, cells[completed + 1 :]


def _start_and_read(setting: CellSetting, cells: Sequence[Cell]) -> WorldRun:
    check = LeakCheck()
    with tempfile.TemporaryDirectory(prefix="cobre-journal-") as folder:
        problem = _start(setting, [(cell.case, cell.params, cell.wrapper) for cell in cells], folder, check.environment)
        ranks = range(setting.size)
        journals = [read_journal(folder, rank) for rank in ranks]
        stacks = [read_stack(folder, rank) for rank in ranks]
    return WorldRun(journals, stacks, problem, check.leaks())


def _start(setting: CellSetting, work: Sequence[object], folder: str, mark: Mapping[str, str]) -> str:
    """Run a world to its end; the starter's error, or an empty string."""
    environment = {**(setting.variant.environment or {}), **mark}
    limit_s = WORLD_LIMIT_S + 0.5 * len(work)
    try:
        ranks_and_sizes = setting.profile.start(
            run_cases, setting.size, (work, folder), environment=environment, timeout_s=limit_s
        )
    except Exception as error:  # noqa: BLE001 - a starter may raise anything; it goes into the result
        return f"{type(error).__name__}: {error}"
    expected = [(rank, setting.size) for rank in range(setting.size)]
    return (
        ""
        if list(map(tuple, ranks_and_sizes)) == expected
        else f"ranks and sizes should be {expected}, not {ranks_and_sizes}"
    )


def _count_completed(run: WorldRun, cells: int) -> int:
    """Count the cells, from the first one on, that every rank has completed without an exception."""
    for number in range(cells):
        entries = [journal.get(number) for journal in run.journals]
        if any(entry is None or entry.error for entry in entries):
            return number
    return cells


def _judge(run: WorldRun, number: int, cell: Cell) -> Result:
    entries = [journal[number] for journal in run.journals]
    try:
        problem = find_case(cell.case).judge(cell.params, [entry.value for entry in entries])
    except Exception as error:  # noqa: BLE001 - a judge may fail on a wrong value
        problem = f"the values cannot be judged: {type(error).__name__}: {error}"
    seconds = max(entry.seconds for entry in entries)
    return Result(cell, Outcome.FAIL if problem else Outcome.PASS, problem, seconds)


def _judge_end(setting: CellSetting, run: WorldRun, *, all_completed: bool) -> Iterator[Result]:
    """Judge the world itself: it must succeed if all its cases ran, and must leave nothing behind in any case."""
    if all_completed:
        yield Result(setting.cell("world/end"), Outcome.ERROR if run.problem else Outcome.PASS, run.problem)
    leaked = ", ".join(run.leaks)
    yield Result(setting.cell("world/leaks"), Outcome.FAIL if leaked else Outcome.PASS, leaked)


def _judge_end_of_job(setting: CellSetting, run: WorldRun, cell: Cell) -> list[Result]:
    """Check that all ranks have ended in time, with an exit code that is not 0."""
    problem = "" if "ended with" in run.problem else f"the job did not end by itself with a failure. {run.problem}"
    ended = Result(cell, Outcome.FAIL if problem else Outcome.PASS, problem)
    return [ended, *_judge_end(setting, run, all_completed=False)]


def _stop_reason(run: WorldRun, number: int) -> str:
    """Describe what is known about the cell in which the world ended early."""
    lines = []
    for rank, journal in enumerate(run.journals):
        entry = journal.get(number)
        if entry is None:
            lines.append(f"rank {rank} did not finish. {run.stacks[rank]}")
        elif entry.error:
            lines.append(f"rank {rank} raised:\n{entry.error}")
    return "\n".join([*lines, run.problem]).strip()


def _batches(cells: Sequence[Cell]) -> Iterator[Sequence[Cell]]:
    together = [cell for cell in cells if not find_case(cell.case).own_world]
    for start in range(0, len(together), BATCH):
        yield together[start : start + BATCH]
    yield from ([cell] for cell in cells if find_case(cell.case).own_world)


# Runs cases on one rank of a test world, one after the other, and writes each result to the journal.

CASE_LIMIT_S = 120.0


def run_cases(comm: Backend, cases: Sequence[tuple[str, Params, str]], folder: str) -> tuple[int, int]:
    """Run cases, given by id, parameters and wrapper; stop at the first that raises: the ranks are then out of sync.

    Returns rank and size, to be compared with what was started.
    """
    with JournalWriter(folder, comm.rank) as journal:
        for number, (identifier, params, wrapper) in enumerate(cases):
            # A rank that hangs writes its stack and exits, which makes the others fail instead of hang.
            faulthandler.dump_traceback_later(CASE_LIMIT_S, exit=True, file=journal.stacks)
            entry = _run_case(_wrapped(comm, wrapper), identifier, params)
            faulthandler.cancel_dump_traceback_later()
            journal.write(number, entry)
            if entry.error:
                comm.abort(f"{identifier} raised")
                break
    return comm.rank, comm.size


def _run_case(comm: Backend, identifier: str, params: Params) -> Entry:
    begin = time.perf_counter()
    try:
        value = find_case(identifier).run(comm, params)
    except Exception:  # noqa: BLE001 - whatever it was, it goes into the journal
        return Entry(error=traceback.format_exc(limit=-6), seconds=time.perf_counter() - begin)
    return Entry(value=value, seconds=time.perf_counter() - begin)


def _wrapped(comm: Backend, wrapper: str) -> Backend:
    """Apply the class or function that `wrapper` names as "module:name" to the communicator; empty: none."""
    if not wrapper:
        return comm
    module, _, name = wrapper.partition(":")
    wrapped: Backend = getattr(importlib.import_module(module), name)(comm)
    return wrapped
