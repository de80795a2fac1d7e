"""The exception that ended a rank, in a form that its parent can report."""

import os
import socket
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cobre.comm.errors import AbortedError, CommunicatorBrokenError, PeerLostError, PeerTimeoutError

# Errors that blame another rank. Not a mismatch: every rank that takes part in one is a cause of it.
CONSEQUENCES = (PeerLostError, AbortedError, PeerTimeoutError, CommunicatorBrokenError)
OWN_FILES = str(Path(__file__).parent) + os.sep


@dataclass(frozen=True, slots=True)
class RankFailure:
    """An exception as text, so that it can be reported even where its class cannot be imported.

    summary: the last line of the traceback, "ValueError: ...".
    traceback_text: the whole traceback, without the launcher's own frames.
    is_consequence: raised because another rank had failed, and therefore not the cause.
    exception: the pickled original; None if it cannot be pickled.
    """

    host: str
    pid: int
    summary: str
    traceback_text: str
    is_consequence: bool
    exception: bytes | None


def failure_from_exception(error: BaseException, pickled: bytes | None) -> RankFailure:
    """Format an exception. pickled: the exception itself; None if it cannot be pickled."""
    trace = _from_user_code(error.__traceback__)
    return RankFailure(
        host=socket.gethostname(),
        pid=os.getpid(),
        summary=traceback.format_exception_only(error)[0].strip(),
        traceback_text="".join(traceback.format_exception(type(error), error, trace)).rstrip(),
        is_consequence=any(isinstance(link, CONSEQUENCES) for link in _chain(error)),
        exception=pickled,
    )


def _from_user_code(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames of the launcher that lie above the user's code."""
    while trace is not None and _is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_own(filename: str) -> bool:
    return filename.startswith((OWN_FILES, "<frozen runpy>"))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and its chain of causes and contexts, which may be cyclic."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__context__ if error.__cause__ is None else error.__cause__
