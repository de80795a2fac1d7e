"""Runs cases on one rank of a test world, one after the other, and writes each result to the journal."""

import faulthandler
import time
import traceback
from collections.abc import Sequence

from cobre.comm.backends.base import Backend
from cobre.comm.testing.case import Params, find_case
from cobre.comm.testing.report import Entry, JournalWriter

CASE_LIMIT_S = 120.0


def run_cases(comm: Backend, cases: Sequence[tuple[str, Params, str]], folder: str) -> tuple[int, int]:
    """Run cases, given by id, parameters and mutant; stop at the first that raises: the ranks are then out of sync.

    Returns rank and size, to be compared with what was started.
    """
    with JournalWriter(folder, comm.rank) as journal:
        for number, (identifier, params, mutant) in enumerate(cases):
            # A rank that hangs writes its stack and exits, which makes the others fail instead of hang.
            faulthandler.dump_traceback_later(CASE_LIMIT_S, exit=True, file=journal.stacks)
            entry = _run_case(_with_mutant(comm, mutant), identifier, params)
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


def _with_mutant(comm: Backend, mutant: str) -> Backend:
    if not mutant:
        return comm
    from cobre.comm.testing.mutants import with_mutant  # noqa: PLC0415 - rarely needed

    return with_mutant(comm, mutant)
