"""How a rank exits: everything that an interpreter does at its end, except tearing itself down."""

import atexit
import contextlib
import gc
import io
import sys
import threading
from typing import NoReturn

from cobre._native import exit_without_teardown

WritableFile = io.TextIOWrapper | io.BufferedWriter

_opened_before_fork: list[WritableFile] = []


def remember_open_files() -> None:
    """To be called by the fork server before it freezes its objects: the collector does not list them any more.

    A module that all ranks import may have opened a file that a rank then writes to, such as a log.
    """
    _opened_before_fork.extend(_open_files())


def exit_rank(code: int) -> NoReturn:
    """Wait for threads, call exit handlers, flush files, and exit.

    Not by `sys.exit`: Python would then destroy every module and object one by one. That writes to nearly all pages
    that a forked rank shares with the fork server, so that the kernel copies them first: on four ranks 0.3 s of CPU
    time for memory that is given back at once. `multiprocessing` ends its children like this, too. It leaves buffered
    files alone, however, whose last lines would be lost; they are flushed here.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for non-daemon threads, as at any exit
    atexit._run_exitfuncs()
    try:
        _flush_files()
    except (OSError, ValueError):  # a full disk, a reader that is gone: Python says so in its own way
        sys.exit(code)
    exit_without_teardown(code)


def _flush_files() -> None:
    """Flush the standard streams, and whatever else this rank has opened for writing and not closed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    # Text first: it ends in a buffered file.
    opened = [*_opened_before_fork, *_open_files()]
    for file in sorted(opened, key=lambda found: not isinstance(found, io.TextIOWrapper)):
        with contextlib.suppress(OSError, ValueError):  # closed or detached; or its disk is full
            file.flush()


def _open_files() -> list[WritableFile]:
    # By type, because `isinstance` would run code of objects that pretend to be others.
    return [found for found in gc.get_objects() if issubclass(type(found), (io.TextIOWrapper, io.BufferedWriter))]
