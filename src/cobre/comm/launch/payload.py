"""What parent and rank hand each other: a task one way, its result the other way, in anonymous files.

This is the only place where anything is pickled. Pickle runs code of whoever wrote the bytes, and it is safe
here for one reason: the files have no name, and their descriptors are inherited by our own children only. No
other user and no network can reach them. A file rather than a pipe: a result of any size never blocks the
rank, and the parent reads it when the rank has gone.
"""

import contextlib
import linecache
import mmap
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, TypeAlias

from cobre.comm.launch.failure import RankFailure, as_text

VALUE, FAILURE, NOTHING = b"V", b"F", b""


@dataclass(frozen=True, slots=True)
class FunctionTask:
    """Call a function with the communicator and send its value back."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptTask:
    """Run a script, or a module by its name, as `__main__`."""

    program: str
    is_module: bool = False


Task: TypeAlias = FunctionTask | ScriptTask


@dataclass(frozen=True, slots=True)
class Startup:
    """What a rank takes over from its parent before it can unpickle a task."""

    path: list[str]
    argv: list[str]
    sources: dict[str, list[str]]

    @classmethod
    def of_this_process(cls) -> Self:
        """The same modules and the same arguments as here."""
        return cls(list(sys.path), list(sys.argv), _unsaved_sources())

    def apply(self) -> None:
        """Make this process look like the one that sent this."""
        sys.path[:] = self.path
        sys.argv[:] = self.argv
        for name, lines in self.sources.items():
            # Without a modification time the entry is never thrown out for want of a file.
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _unsaved_sources() -> dict[str, list[str]]:
    """Code that exists in a notebook or a shell only, so that a rank's traceback can quote it."""
    sources = {}
    for name, entry in linecache.cache.items():
        if len(entry) == 4 and not Path(name).exists():
            sources[name] = entry[2]
    return sources


@contextlib.contextmanager
def anonymous_file(name: str) -> Iterator[IO[bytes]]:
    """A file without a name in any folder; it goes with its last descriptor."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create(name), "w+b")
    else:
        file = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed below
    with file:
        yield file


def _cloudpickle() -> Any:
    """Pickles what has no importable name: lambdas, closures, what a script or a notebook defines."""
    import cloudpickle  # type: ignore[import-untyped]  # noqa: PLC0415 - only who starts ranks needs it

    return cloudpickle


def write_task(file: IO[bytes], startup: Startup, task: Task) -> None:
    """Write once what all ranks will read."""
    pickle.dump(startup, file)
    try:
        _cloudpickle().dump(task, file)
    except Exception as error:
        raise TypeError(f"{_culprit(task)} cannot be sent to the ranks: {error}") from error
    file.flush()


def _culprit(task: Task) -> str:
    """Name the part that does not pickle."""
    if isinstance(task, ScriptTask):
        return task.program
    named = [(f"argument {index} ({_shown(value)})", value) for index, value in enumerate(task.args)]
    named += [(f"argument {key!r} ({_shown(value)})", value) for key, value in task.kwargs.items()]
    unsendable = (name for name, value in named if not _pickles(value))
    return next(unsendable, f"function {getattr(task.function, '__qualname__', task.function)!s}")


def _shown(value: object) -> str:
    return f"a {type(value).__qualname__}"


def _pickles(value: object) -> bool:
    return dump_or_none(value) is not None


def dump_or_none(value: object) -> bytes | None:
    """The pickled value, or None where there is no such thing."""
    try:
        return bytes(_cloudpickle().dumps(value))
    except Exception:  # noqa: BLE001 - pickling runs the value's own code
        return None


def load_or_none(pickled: bytes | None) -> Any:
    """The value, or None where it cannot be rebuilt in this process."""
    try:
        return None if pickled is None else pickle.loads(pickled)  # noqa: S301 - see above
    except Exception:  # noqa: BLE001 - unpickling runs the value's own code
        return None


def describe_failure(error: BaseException) -> RankFailure:
    """What a rank sends to its parent about the exception that ended it; call it where the exception is handled."""
    return as_text(error, dump_or_none(error))


def original_exception(failure: RankFailure) -> BaseException | None:
    """The exception itself, rebuilt in this process; None where it does not pickle or its class is unknown here.

    Runs code of whoever pickled it: only for failures of ranks that this program started itself.
    """
    error = load_or_none(failure.exception)
    return error if isinstance(error, BaseException) else None


class TaskReader:
    """A rank's view of the task file. Mapped, because all ranks share one file position."""

    def __init__(self, descriptor: int) -> None:
        self._view = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)

    def startup(self) -> Startup:
        """The first part; apply it before reading the task."""
        startup: Startup = pickle.load(self._view)  # noqa: S301 - see above
        return startup

    def task(self) -> Task:
        """The second part, which may import the caller's modules."""
        task: Task = pickle.load(self._view)  # noqa: S301 - see above
        return task


class ResultWriter:
    """A rank's end of its result file. The first byte tells what follows and is written last."""

    def __init__(self, descriptor: int) -> None:
        # Left open: the descriptor ends with the process.
        self._file = os.fdopen(descriptor, "r+b", closefd=False)

    def write_value(self, value: object) -> None:
        """Send the rank's return value."""
        self._restart()
        try:
            _cloudpickle().dump(value, self._file)
        except Exception as error:  # noqa: BLE001 - pickling runs the value's own code
            # Without the cause: its traceback would show only how pickling works.
            raise TypeError(f"the return value ({_shown(value)}) cannot be sent back: {error}") from None
        self._seal(VALUE)

    def write_failure(self, failure: RankFailure) -> None:
        """Send what is known of the exception that ended the rank."""
        self._restart()
        pickle.dump(failure, self._file)
        self._seal(FAILURE)

    def _restart(self) -> None:
        self._file.truncate(0)
        self._file.seek(1)

    def _seal(self, kind: bytes) -> None:
        self._file.flush()
        os.pwrite(self._file.fileno(), kind, 0)


class ResultReader:
    """The parent's end of a result file, to be read when the rank has gone."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @property
    def descriptor(self) -> int:
        """What the rank inherits."""
        return self._file.fileno()

    def kind(self) -> bytes:
        """One of VALUE, FAILURE, NOTHING."""
        kind = os.pread(self.descriptor, 1, 0)
        return kind if kind in (VALUE, FAILURE) else NOTHING

    def value(self) -> Any:
        """The rank's return value."""
        return self._load()

    def failure(self) -> RankFailure | None:
        """The rank's exception, if it left one."""
        failure = self._load() if self.kind() == FAILURE else None
        return failure if isinstance(failure, RankFailure) else None

    def _load(self) -> Any:
        self._file.seek(1)
        return pickle.load(self._file)  # noqa: S301 - see above
