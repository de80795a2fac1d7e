"""How a rank exits: everything that an interpreter does at its end, except for taking itself apart."""

import atexit
import contextlib
import gc
import io
import sys
import threading
from typing import NoReturn

from cobre._native import exit_without_teardown


def exit_rank(code: int) -> NoReturn:
    """Wait for threads, call exit handlers, flush files, and exit.

    Not by `sys.exit`: Python would then destroy every module and object one by one. That writes to nearly all pages
    that a forked rank shares with the fork server, so that the kernel copies them first: on four ranks 0.3 s of CPU
    time for memory that is given back at once. `multiprocessing` ends its children like this, too. It leaves buffered
    files alone, however, whose last lines would be lost; they are flushed here.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons, as at any exit
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
    # Objects from before the fork are not listed: they are frozen, and nothing of a rank's is in their buffers. By
    # type, because `isinstance` would run code of objects that pretend to be others.
    opened = [found for found in gc.get_objects() if issubclass(type(found), (io.TextIOWrapper, io.BufferedWriter))]
    # Text first: it ends in a buffered file.
    for file in sorted(opened, key=lambda found: not isinstance(found, io.TextIOWrapper)):
        with contextlib.suppress(OSError, ValueError):  # closed or detached; or its disk is full
            file.flush()
