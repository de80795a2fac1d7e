"""One run at a time in an output directory."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cobre.errors import OutputError
from cobre.io.storage.atomic import as_write_error, check_writable, cleanup, remove_leftovers
from cobre.io.storage.confined import no_links_below, open_own, remove_file
from cobre.printable import printable
from cobre.runs.files import LOCK_FILE

__all__ = ["OutputInUseError", "output_lock"]

ATTEMPTS = 10
PAUSE_S = 0.02


class OutputInUseError(OutputError):
    """Another run writes to this directory."""


@contextmanager
def output_lock(folder: Path) -> Iterator[None]:
    """Hold the directory, in which nothing is written through a link, and remove what killed runs left half written.

    The lock goes with this process, however it ends; what is left of the file does no harm.
    """
    path = folder / LOCK_FILE
    with no_links_below(folder):
        check_writable(folder)
        with as_write_error(path):
            descriptor = _locked(path)
        with cleanup(lambda: _release(path, descriptor)):
            with as_write_error(path):
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                remove_leftovers(folder)
            yield


def _release(path: Path, descriptor: int) -> None:
    try:
        with as_write_error(path):
            remove_file(path)  # while it is held: nobody can have locked it in between
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock the directory, retrying for a moment: another process may hold the lock just to test it."""
    for attempt in range(ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(PAUSE_S)
        else:
            return


def _locked(path: Path) -> int:
    """A descriptor of the file that has the name now; one that was unlinked before we had it is given up."""
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
        if _has_name(descriptor, path):
            return descriptor
        os.close(descriptor)


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
