"""Reading of untrusted files: only regular files of limited size, inside the directory they belong to."""

import errno
import os
import stat
from pathlib import Path

from cobre.errors import CobreError

MAX_BYTES = 1 << 36
"""Bytes of the largest file read at once; largest policy: 9.1 GB with 120 stages x 9,000 cuts x 1,057 states."""
MAX_TABLE_BYTES = 1 << 40
"""Bytes of the largest file that is read piece by piece: tables and checkpoints."""
MAX_TEXT_BYTES = 1 << 28
"""Bytes of the largest file of settings, summary, manifest or log."""

MAX_GROWTH_BYTES = 1 << 24
"""Bytes by which a file may grow while it is read: a log may be appended to."""


class UntrustedFileError(CobreError, OSError):
    """A path that is not read: a device, a pipe, something too large, or outside the directory that it belongs to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.strerror = text


def read_untrusted_text(path: Path) -> str:
    """The text of a file. Raises OSError, and ValueError if it is not UTF-8."""
    return read_untrusted(path).decode("utf-8")


def check_untrusted(path: Path) -> Path:
    """The path, checked to be a regular file, for libraries that open files by path. Raises OSError."""
    os.close(open_untrusted(path, MAX_TABLE_BYTES))
    return path


def read_untrusted(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """The content of a regular file. Raises OSError; UntrustedFileError for other files or more than `max_bytes`."""
    descriptor = open_untrusted(path, max_bytes)
    with os.fdopen(descriptor, "rb") as stream:
        most = min(max_bytes, os.fstat(descriptor).st_size + MAX_GROWTH_BYTES)  # `read` allocates this much
        content = stream.read(most + 1)
    if len(content) > most:
        raise UntrustedFileError(f"{path} grows while it is read: it has more than {most} bytes")
    return content


def open_untrusted(path: Path, max_bytes: int = MAX_BYTES) -> int:
    """A descriptor for reading a regular file, opened without blocking. Raises as `read_untrusted`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedFileError(f"{path} is a device, a pipe or a socket, not a file")
        if status.st_size > max_bytes:
            raise UntrustedFileError(f"{path} has {status.st_size} bytes, and at most {max_bytes} are read")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def named_inside(root: Path, name: object, what: str) -> Path:
    """The path of `name` relative to `root`, which it must not leave, not even through links.

    `what` describes the origin of the name, for messages. Raises UntrustedFileError.
    """
    if not isinstance(name, str) or "\0" in name:
        raise UntrustedFileError(f"{what} is not a path")
    path = root / name
    try:
        is_inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # the name is too long, or links form a cycle
        is_inside = False
    if not is_inside:
        raise UntrustedFileError(f"{what} leads out of {root} and is not followed")
    return path
