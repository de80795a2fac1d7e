"""How a rank ended, in a form that its parent can report: the exception, or the exit code in words."""

import os
import resource
import signal
import socket
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cobre.comm.errors import (
    AbortedError,
    CommunicatorBrokenError,
    InitializationFailedError,
    PeerLostError,
    PeerTimeoutError,
    RendezvousAbandonedError,
)

# Errors that blame another rank. Not a mismatch: every rank that takes part in one is a cause of it.
CONSEQUENCES = (PeerLostError, AbortedError, PeerTimeoutError, CommunicatorBrokenError, RendezvousAbandonedError)
HINTS = {
    signal.SIGBUS: "likely a mapped file, or shared memory, on a full disk.",
    signal.SIGSEGV: "a crash in native code.",
    signal.SIGXCPU: "it has used all the CPU time that it may. Raise the limit (ulimit -t).",
    signal.SIGXFSZ: "a file has reached the largest size that it may have. Raise the limit (ulimit -f).",
}
OWN_FILES = str(Path(__file__).parent) + os.sep


@dataclass(frozen=True, slots=True)
class RankFailure:
    """An exception as text, so that it can be reported even where its class cannot be imported.

    summary: the last line of the traceback, "ValueError: ...".
    traceback_text: the whole traceback, without the launcher's own frames.
    is_consequence: raised because another rank had failed, and therefore not the cause.
    exception: the pickled original; None if it cannot be pickled.
    missing: the ranks that did not come, if that is the reason.
    """

    host: str
    pid: int
    summary: str
    traceback_text: str
    is_consequence: bool
    exception: bytes | None
    missing: tuple[int, ...] = ()


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
        missing=tuple(
            rank for link in _chain(error) if isinstance(link, InitializationFailedError) for rank in link.missing
        ),
    )


def ending_of(exit_code: int) -> str:
    """How a process ended that wrote no exception, and what may be the reason; to follow its name."""
    if exit_code >= 0:
        return f"exited with code {exit_code} before it finished"
    try:
        signum = signal.Signals(-exit_code)
    except ValueError:  # a real-time signal
        return f"was killed by signal {-exit_code}"
    hint = _hint_for_kill() if signum is signal.SIGKILL else HINTS.get(signum, "")
    return f"was killed by {signum.name} (signal {-exit_code})" + (hint and f": {hint}")


def _hint_for_kill() -> str:
    """Advice for SIGKILL: the kernel kills for want of memory and, at the hard limit, for CPU time.

    Ranks have the limits of this process.
    """
    limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if limit == resource.RLIM_INFINITY:
        return "likely out of memory. Try fewer ranks."
    return f"out of memory (try fewer ranks), or {limit} s of CPU time used, the hard limit (ulimit -H -t)."


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
