"""One rank's end of a world of ranks: the state that every call on it passes through.

`Communicator` and `SharedMemoryProvider` are separate contracts, which the same object implements. What they share is
here: the numbering of calls, the guard against misuse, the first failure, closing.
"""

import atexit
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, Self

from cobre._native import CallGuard
from cobre.comm.errors import (
    BackendError,
    CollectiveFailedError,
    CommError,
    CommunicatorBrokenError,
    CommunicatorBusyError,
    CommunicatorClosedError,
    ForkedCommunicatorError,
    Peer,
)
from cobre.comm.flight_recorder import (
    RecordedCall,
    describe_calls,
    live_reporters,
    named_calls,
    report,
    report_on_signal,
)
from cobre.comm.trace.writer import start_trace
from cobre.comm.types import Operation, ReduceOp

logger = logging.getLogger("cobre.comm")

PROGRESS_S = 30.0  # between two log lines about a rank that is still waited for, on all backends
EXIT_PAUSE_S = 0.2  # for threads that were woken at exit to leave native code


class Endpoint(ABC):
    """Base of communicators and region providers: rank, size, state, closing, aborting, guarding calls.

    It cannot be pickled, nor used in a forked child (clause 6). A backend must define `_close` and `_abort`, and may
    override `_translate`.
    """

    # A slot, so that native code finds the guard at a fixed place in the object; everything else is in `__dict__`.
    __slots__ = ("__dict__", "__weakref__", "_guard")

    backend: str = "?"

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._size = size
        self._guard = CallGuard(rank, size, ReduceOp)
        self._first_failure: BaseException | None = None
        self._logged_wait = 0  # the last call whose wait was logged together with the calls before it
        self._trace = start_trace(self, self._guard, self.backend, rank, size)
        report_on_signal(self)

    @property
    def rank(self) -> int:
        """The rank of this process, from 0 to `size` - 1."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    @property
    def sequence(self) -> int:
        """The number of the last collective that this rank has started; 0 before the first."""
        return self._guard.sequence

    @property
    def state(self) -> str:
        """One of "open", "busy" (a call is under way), "broken", "closed" and "forked"."""
        return self._guard.state

    def recent_calls(self) -> list[RecordedCall]:
        """Return the last calls of this rank, up to 1024, oldest first; failed ones are included."""
        return named_calls(self._guard.recent())

    def report(self) -> str:
        """Describe state, the call under way, the calls before it with durations, and the first failure."""
        return report(self._label(), self.state, self.recent_calls(), self._first_failure)

    def close(self) -> None:
        """Leave the world. May be repeated and called after a failure; never waits for another rank.

        Ranks that still need this one get `PeerLostError`.
        """
        # The guard lets only one caller through, so that everything is released once.
        if self._guard.close():
            if self._trace is not None:
                self._trace.close()
            self._close()

    def abort(self, reason: str) -> None:
        """Give up: the current or next call of every other rank raises `AbortedError` with the reason.

        On mpi, ends the whole job.
        """
        if self._guard.state in ("open", "busy"):
            self._break(CollectiveFailedError("abort", 0, f"this rank called abort: {reason}", self.sequence), reason)

    def give_up(self, error: BaseException) -> None:
        """Abort because of an exception, which the other ranks report.

        Leaving the `with` block by an exception does this before it closes the communicator. For programs that borrow a
        communicator, and leave closing it to its owner.
        """
        # `sys.exit(0)` is an orderly end.
        if isinstance(error, SystemExit) and not error.code:
            return
        if isinstance(error, Exception) and self._first_failure is None and self.sequence:
            error.add_note(self._last_calls())
        self.abort(_describe_exception(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                self.give_up(error)
        finally:
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} belongs to one process and cannot be pickled; call create_communicator() on every "
            "rank, or start ranks with cobre.comm.launch.run"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} rank {self._rank} of {self._size}, {self.state}>"

    # The hooks of a backend.

    @abstractmethod
    def _close(self) -> None:
        """Release everything; called once, must not wait for other ranks."""

    @abstractmethod
    def _abort(self, reason: str) -> None:
        """Send the reason to all other ranks; must not wait for them, must not raise."""

    def _translate(self, error: BaseException, operation: Operation) -> BaseException:
        """Map an error of the backend to one of the contract; other errors are returned as they are."""
        if isinstance(error, OSError | BackendError):
            return CollectiveFailedError(operation.title, 0, str(error), self.sequence)
        return error

    # Calls that the native guard does not run itself.

    @contextmanager
    def _call(self, operation: Operation, nbytes: int = 0, label: str = "") -> Iterator[None]:
        """Guard, number and record the call that is made in the block."""
        self._begin(operation, nbytes, label)
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - any exception ends the call
            self._fail(operation, error)
        self._guard.end()

    def _begin(self, operation: Operation, nbytes: int, label: object) -> None:
        # A label is only for display: a wrong type must not make a call fail on one of the ranks.
        text = "" if label is None else str(label)
        if not self._guard.begin(operation, nbytes, text):
            self._raise_unusable()

    def _require_open(self) -> None:
        if self._guard.state != "open":
            self._raise_unusable()

    def _raise_unusable(self) -> NoReturn:
        """Raise the error for the present state, in which no call can be made."""
        state = self._guard.state
        label = self._label()
        if state == "broken":
            raise CommunicatorBrokenError(
                f"{label}: this communicator is broken by an earlier failure: {self._first_failure}"
            ) from self._first_failure
        if state == "closed":
            raise CommunicatorClosedError(f"{label}: this communicator is closed")
        if state == "forked":
            raise ForkedCommunicatorError(
                f"{label}: process {os.getpid()} is a fork of the process that owns this communicator; start ranks "
                "with cobre.comm.launch instead"
            )
        # Open again: the other thread's call, which caused this refusal, has ended by now.
        where = f"is inside {self._guard.current}" if state == "busy" else "was inside a call"
        raise CommunicatorBusyError(f"{label}: another thread {where}; only one thread may call at a time")

    def _fail(self, operation: Operation, error: BaseException) -> NoReturn:
        """End the call with an error, which breaks the communicator unless all ranks raise it alike."""
        translated = self._translate(error, operation)
        if isinstance(translated, CommError) and not isinstance(translated, CollectiveFailedError):
            self._guard.end()
        else:
            self._break(translated, _describe_exception(error))
        if translated is error:
            raise error
        raise translated from error

    def _break(self, failure: BaseException, reason: str) -> None:
        """Remember the first failure, refuse later calls, and inform the other ranks."""
        if self._first_failure is None:
            self._first_failure = failure
            # Logged first, because `_abort` may end the process (mpi). In `finally`, because a log handler that raises
            # must not keep the other ranks waiting.
            try:
                self._log_failure(failure)
            finally:
                self._guard.fail()
                self._abort(f"{Peer.of_this_process(self._rank)}: {reason}")

    def _log_failure(self, failure: BaseException) -> None:
        if self._trace is not None:
            self._trace.fail(failure)
        calls = self._last_calls()
        if isinstance(failure, CommError):
            failure.add_note(calls)  # printed with the error, wherever that is
        logger.info("broke: %s: %s; %s", type(failure).__name__, failure, calls)

    def _last_calls(self) -> str:
        return f"{self._label()}, last calls: {describe_calls(self.recent_calls())}"

    def _log_wait(self, seconds: float, missing: Sequence[str]) -> None:
        """Log which ranks are missing; called by backends every PROGRESS_S of waiting."""
        logger.warning(
            "%s has waited %.0f s in %s call #%d for %s%s",
            self._label(),
            seconds,
            self._guard.current,
            self.sequence,
            "; ".join(missing),
            self._calls_before_wait(),
        )

    def _calls_before_wait(self) -> str:
        """Return the last calls of this rank for a log line, once per call."""
        if self._logged_wait == self.sequence:
            return ""
        self._logged_wait = self.sequence
        return f"; last calls here: {describe_calls(self.recent_calls())}"

    def _label(self) -> str:
        return f"rank {self._rank} of {self._size} ({self.backend})"


def _describe_exception(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error that cannot be printed is still an error
        return type(error).__name__


# Registered at import, before any backend registers a handler, and atexit runs in reverse order: on mpi, `Job._at_exit`
# has announced the end of this process to the other ranks, or has aborted the job, before this runs.
@atexit.register
def _abort_busy_endpoints() -> None:
    """Wake daemon threads that wait in a collective at exit: they must not run while the interpreter is torn down."""
    busy = [reporter for reporter in live_reporters() if isinstance(reporter, Endpoint) and reporter.state == "busy"]
    for endpoint in busy:
        endpoint.abort("the process exits")
    if busy:
        time.sleep(EXIT_PAUSE_S)
