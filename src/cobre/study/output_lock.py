"""One run at a time in an output directory."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cobre.errors import OutputError
from cobre.io.atomic import check_writable
from cobre.io.lock_file import LOCK_FILE, is_in_use

__all__ = ["LOCK_FILE", "OutputInUseError", "is_in_use", "output_lock"]

ATTEMPTS = 10
PAUSE_S = 0.02


class OutputInUseError(OutputError):
    """Another run writes to this directory."""


@contextmanager
def output_lock(folder: Path) -> Iterator[None]:
    """Hold the directory. The lock goes with this process, however it ends; what is left of the file does no harm."""
    check_writable(folder)
    path = folder / LOCK_FILE
    descriptor = _locked(path)
    try:
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: nobody can have locked it in between
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """At once, or a moment later: whoever asks whether the directory is in use holds the file while asking."""
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
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
        except OSError as error:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            message = f"{path.parent} is used by a running study ({owner}): wait for it, or choose another --output"
            raise OutputInUseError(message) from error
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        os.close(descriptor)
