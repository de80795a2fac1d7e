"""The lock of an output directory: one run at a time."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cobre.core.file_names import LOCK_FILE
from cobre.errors import OutputError
from cobre.io.storage.atomic import as_write_error, check_writable, cleanup, remove_leftovers
from cobre.io.storage.confined import no_links_below, open_own, remove_file
from cobre.text import printable

LOCK_ATTEMPTS = 10
LOCK_PAUSE_S = 0.02


class OutputInUseError(OutputError):
    """Another run writes to this directory."""


@contextmanager
def output_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a directory, remove partial files of killed runs, and write through no links below it.

    The kernel releases the lock however this process ends; the file may remain. Raises OutputInUseError.
    """
    path = folder / LOCK_FILE
    with no_links_below(folder):
        check_writable(folder)
        with as_write_error(path):
            descriptor = _open_locked(path)
        with cleanup(lambda: _release(path, descriptor)):
            with as_write_error(path):
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                remove_leftovers(folder)
            yield


def _release(path: Path, descriptor: int) -> None:
    try:
        with as_write_error(path):
            remove_file(path)  # while it is locked: no other process can lock it in between
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock the file, with retries: `is_in_use` of another process holds the lock for a moment."""
    for attempt in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == LOCK_ATTEMPTS - 1:
                raise
            time.sleep(LOCK_PAUSE_S)
        else:
            return


def _open_locked(path: Path) -> int:
    """Open and lock the file of this name, and return its descriptor; retry if it was unlinked in the meantime."""
    while True:
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(descriptor)
        except BlockingIOError as error:
            owner = printable(os.pread(descriptor, 200, 0).decode(errors="replace").strip()) or "another process"
            os.close(descriptor)
            message = (
                f"{path.parent} is used by a running study ({owner}): wait for it to end, or choose another --output"
            )
            raise OutputInUseError(message) from error
        except BaseException:
            os.close(descriptor)
            raise
        if _is_still_named(descriptor, path):
            return descriptor
        os.close(descriptor)


def _is_still_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
