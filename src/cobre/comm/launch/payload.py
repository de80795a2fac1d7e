"""Payloads that parent and ranks exchange through anonymous files: a task in one direction, its result in the other.

The only place in `cobre.comm` where anything is pickled. Unpickling runs the sender's code. It is safe here for
one reason: the files have no name, and only our own children inherit their descriptors; no other user and no network
can reach them. Files rather than pipes: a result of any size never blocks the rank, and the parent reads it after the
rank has ended.
"""

import contextlib
import errno
import linecache
import mmap
import os
import pickle
import resource
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias

from cobre.comm.errors import (
    AbortedError,
    CommunicatorBrokenError,
    InitializationFailedError,
    PeerLostError,
    PeerTimeoutError,
    RendezvousAbandonedError,
)
from cobre.errors import CobreError, error_details

# The end of a rank, in a form that its parent can report: the exception, or a description of the exit code.

# Errors that blame another rank. Not a mismatch: every rank that takes part in one is a cause of it.
CONSEQUENCES = (PeerLostError, AbortedError, PeerTimeoutError, CommunicatorBrokenError, RendezvousAbandonedError)

HINTS = {
    signal.SIGBUS: "likely a mapped file, or shared memory, on a full disk.",
    signal.SIGSEGV: "a crash in native code.",
    signal.SIGXCPU: "it has used up its CPU time. Raise the limit (ulimit -t).",
    signal.SIGXFSZ: "a file has reached the limit on its size. Raise the limit (ulimit -f).",
}

OWN_FILES = str(Path(__file__).parent) + os.sep


@dataclass(frozen=True, slots=True)
class RankFailure:
    """An exception as text, so that it can be reported even if its class cannot be imported.

    summary: the last line of the traceback, "ValueError: ...".
    traceback_text: the whole traceback, without the launcher's own frames.
    is_consequence: raised because another rank had failed, and therefore not the cause.
    exception: the pickled original; None if it cannot be pickled.
    missing: the ranks that did not connect, if that is the reason.
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
    """Describe how a process ended that wrote no exception, with the likely reason; to be appended to its name."""
    if exit_code >= 0:
        return f"exited with code {exit_code} before it finished"
    try:
        signum = signal.Signals(-exit_code)
    except ValueError:  # a real-time signal
        return f"was killed by signal {-exit_code}"
    hint = _hint_for_kill() if signum is signal.SIGKILL else HINTS.get(signum, "")
    return f"was killed by {signum.name} (signal {-exit_code})" + (hint and f": {hint}")


def _hint_for_kill() -> str:
    """Return advice for SIGKILL: the kernel kills when memory runs out and at the hard limit of CPU time.

    Ranks have the limits of this process.
    """
    limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if limit == resource.RLIM_INFINITY:
        return "likely out of memory. Try fewer ranks."
    return f"out of memory (try fewer ranks), or {limit} s of CPU time used, the hard limit (ulimit -H -t)."


def _from_user_code(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames of the launcher above the user's code."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((OWN_FILES, "<frozen runpy>")):
        trace = trace.tb_next
    return trace


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception and its chain of causes and contexts, which may be cyclic."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__context__ if error.__cause__ is None else error.__cause__


VALUE, FAILURE, EMPTY = b"V", b"F", b""


@dataclass(frozen=True, slots=True)
class FunctionTask:
    """Call a function with the communicator and return its value."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptTask:
    """Run a script, or a module, as `__main__`."""

    program: str
    is_module: bool = False


Task: TypeAlias = FunctionTask | ScriptTask


@dataclass(frozen=True, slots=True)
class Startup:
    """State that a rank takes over from its parent before it unpickles a task.

    path: `sys.path`. argv: `sys.argv`. sources: lines of code that exists in no file, by file name.
    """

    path: list[str]
    argv: list[str]
    sources: dict[str, list[str]]

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the import path, arguments and unsaved sources of this process."""
        return cls(list(sys.path), list(sys.argv), _unsaved_sources())

    def apply(self) -> None:
        """Take over path, arguments and sources in this process."""
        sys.path[:] = self.path
        sys.argv[:] = self.argv
        for name, lines in self.sources.items():
            # Without a modification time linecache does not drop the entry because there is no such file.
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _unsaved_sources() -> dict[str, list[str]]:
    """Return code that exists only in a notebook or a shell, so that a rank's traceback can quote it."""
    sources = {}
    for name, entry in linecache.cache.items():
        if len(entry) == 4 and not Path(name).exists():
            sources[name] = entry[2]
    return sources


@contextlib.contextmanager
def anonymous_file(name: str) -> Iterator[IO[bytes]]:
    """Open a file without a name in any directory; it is freed with its last descriptor."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create(name), "w+b")
    else:
        file = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed below
    try:
        yield file
    finally:
        # Writers flush. What could not be written then cannot be written now, and has been reported.
        with contextlib.suppress(OSError):
            file.close()


def _cloudpickle() -> Any:
    """Return the library that also pickles what cannot be imported: lambdas, closures, definitions of a notebook."""
    # Imported here: only processes that start ranks, and ranks, need it. It has no type hints, which mypy must be told.
    import cloudpickle  # type: ignore[import-untyped]  # noqa: PLC0415

    return cloudpickle


def write_task(file: IO[bytes], startup: Startup, task: Task) -> None:
    """Write what all ranks read; raises `TypeError`, naming the argument that cannot be pickled."""
    # In two parts: a rank needs the launcher's sys.path before it can import what the task refers to.
    pickle.dump(startup, file)
    try:
        _cloudpickle().dump(task, file)
    except OSError:  # no room: not what pickling raises
        raise
    except Exception as error:
        raise TypeError(f"cannot pickle {_unpicklable_part(task)} to send it to the ranks: {error}") from error
    file.flush()


def _unpicklable_part(task: Task) -> str:
    """Name the argument that cannot be pickled, or the function."""
    if isinstance(task, ScriptTask):
        return task.program
    arguments = [(f"argument {index} ({_type_name(value)})", value) for index, value in enumerate(task.args)]
    arguments += [(f"argument {key!r} ({_type_name(value)})", value) for key, value in task.kwargs.items()]
    unpicklable = (name for name, value in arguments if dump_or_none(value) is None)
    return next(unpicklable, f"function {getattr(task.function, '__qualname__', task.function)!s}")


def _type_name(value: object) -> str:
    return f"a {type(value).__qualname__}"


def dump_or_none(value: object) -> bytes | None:
    """Pickle the value; None if it cannot be pickled."""
    try:
        return bytes(_cloudpickle().dumps(value))
    except Exception:  # noqa: BLE001 - pickling runs the value's own code
        return None


def load_or_none(pickled: bytes | None) -> Any:
    """Unpickle the value; None if it cannot be unpickled in this process."""
    try:
        return None if pickled is None else pickle.loads(pickled)  # noqa: S301 - see above
    except Exception:  # noqa: BLE001 - unpickling runs the value's own code
        return None


def describe_failure(error: BaseException) -> RankFailure:
    """Describe the exception that ended a rank in a form that can be sent; to be called in the `except` block."""
    return failure_from_exception(error, dump_or_none(error))


def original_exception(failure: RankFailure) -> BaseException | None:
    """Return the exception itself, unpickled; None if it was not pickled, or its class cannot be imported here.

    Unpickling runs code chosen by the sender: only for failures of ranks that this program started itself.
    """
    error = load_or_none(failure.exception)
    return error if isinstance(error, BaseException) else None


class TaskReader:
    """A rank's view of the task file; mapped, because inherited descriptors share one file position."""

    def __init__(self, descriptor: int) -> None:
        self._view = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)

    def startup(self) -> Startup:
        """Return the first part, to be applied before the task is read."""
        startup: Startup = pickle.load(self._view)  # noqa: S301 - see above
        return startup

    def task(self) -> Task:
        """Return the second part; unpickling it may import the caller's modules."""
        task: Task = pickle.load(self._view)  # noqa: S301 - see above
        return task


class ResultWriter:
    """A rank's end of its result file. The first byte is the kind of the content, and is written last: a commit."""

    def __init__(self, descriptor: int) -> None:
        # Not closed with the file object: the descriptor stays open until the process ends.
        self._file = os.fdopen(descriptor, "r+b", closefd=False)

    def write_value(self, value: object) -> None:
        """Write the rank's return value; raises `TypeError` if it cannot be pickled."""
        self._restart()
        try:
            _cloudpickle().dump(value, self._file)
        except OSError as error:
            raise _storage_error(value, error) from error
        except Exception as error:  # noqa: BLE001 - pickling runs the value's own code
            # Without the cause, whose traceback would only show the inside of pickle.
            raise TypeError(f"cannot pickle the return value ({_type_name(value)}): {error}") from None
        try:
            self._seal(VALUE)
        except OSError as error:
            self._file = os.fdopen(self._file.fileno(), "r+b", closefd=False)  # the old buffer cannot be written
            raise _storage_error(value, error) from error

    def write_failure(self, failure: RankFailure) -> None:
        """Write the exception that ended the rank."""
        self._restart()
        pickle.dump(failure, self._file)
        self._seal(FAILURE)

    def _restart(self) -> None:
        # Byte 0 stays a hole until `_seal`: until then `kind` is EMPTY.
        self._file.truncate(0)
        self._file.seek(1)

    def _seal(self, kind: bytes) -> None:
        # The content first: a rank that is killed in between has written nothing, rather than half a value.
        self._file.flush()
        os.pwrite(self._file.fileno(), kind, 0)


def _storage_error(value: object, error: OSError) -> OSError:
    """Return the error for a value that its file cannot hold: it is in memory, and subject to the limit on files."""
    limit = "; raise the limit on the size of files (ulimit -f)" if error.errno == errno.EFBIG else ""
    return OSError(
        error.errno, f"cannot store the return value ({_type_name(value)}): {error.strerror or error}{limit}"
    )


class ResultReader:
    """The parent's end of a result file, to be read after the rank has ended."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @property
    def descriptor(self) -> int:
        """The descriptor that the rank inherits."""
        return self._file.fileno()

    def kind(self) -> bytes:
        """Return the kind of the result that the rank wrote: VALUE, FAILURE or EMPTY."""
        kind = os.pread(self.descriptor, 1, 0)
        return kind if kind in (VALUE, FAILURE) else EMPTY

    def value(self) -> Any:
        """Return the rank's return value, unpickled."""
        return self._load()

    def failure(self) -> RankFailure | None:
        """Return the exception that the rank wrote, if any."""
        failure = self._load() if self.kind() == FAILURE else None
        return failure if isinstance(failure, RankFailure) else None

    def _load(self) -> Any:
        self._file.seek(1)
        return pickle.load(self._file)  # noqa: S301 - see above


# The exception that `launch.run` raises when a rank fails.


class WorkerError(CobreError):
    """A rank failed, and all others were stopped.

    rank: the rank that failed first, not one that failed as a consequence.
    exit_code: of its process; negative for a signal, as in `subprocess`.
    inner: the rank's own exception if it could be unpickled here, else None; also the `__cause__`.

    The text names the host and the pid, and contains the rank's own traceback, or the name of the signal.
    """

    remedy = "look at the rank's own error in the message; a run with checkpoints can be resumed"

    def __init__(self, rank: int, exit_code: int, inner: BaseException | None = None, message: str = "") -> None:
        super().__init__(rank, exit_code, inner, message)
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner
        self.message = message

    def details(self) -> dict[str, Any]:
        """Add `rank`, `worker_exit_code`, and the details of the rank's own error as `inner` (None: unknown)."""
        inner = None if self.inner is None else error_details(self.inner)
        return super().details() | {"rank": self.rank, "worker_exit_code": self.exit_code, "inner": inner}

    def __str__(self) -> str:
        return self.message or f"rank {self.rank} failed with exit code {self.exit_code}"
