"""Confined writing: below a given directory no symbolic link is followed.

A case or output directory of another user may contain links to other files of the user. A path is therefore opened
step by step from the directory that was named, by descriptors and without following links, so that the checked
file is the one that is used, even if the directory is changed in the meantime.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cobre.errors import CobreError

_roots: list[Path] = []  # of this process; a run has one

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # do not block on a pipe without a reader


@contextmanager
def no_links_below(root: Path) -> Iterator[None]:
    """Follow no symbolic link when writing below `root` during the block; `root` itself may be one."""
    entry = _absolute(root)
    _roots.append(entry)
    try:
        yield
    finally:
        _roots.remove(entry)


@contextmanager
def open_folder(folder: Path, *, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of a directory, for calls with `dir_fd`; with `make`, missing directories are created.

    Raises OSError, with ELOOP for a symbolic link.
    """
    root, below = _split(folder)
    if make:
        root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root, _DIRECTORY)
    try:
        for part in below:
            inner = _enter(descriptor, part, folder, make=make)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a directory and its parents, if missing."""
    with open_folder(folder, make=True):
        pass


def create_file(path: Path) -> BinaryIO:
    """Return a new file to write to, with permissions by the umask. Raises FileExistsError."""
    with _named(path), open_folder(path.parent) as folder:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _NO_FOLLOW
        return os.fdopen(os.open(path.name, flags, 0o666, dir_fd=folder), "wb")


def open_own(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file without other hard links, created if missing (by `flags`).

    Raises OSError: EMLINK for a hard link, ENXIO for a device, pipe or socket.
    """
    with _named(path), open_folder(path.parent) as folder:
        descriptor = os.open(path.name, flags | _NO_FOLLOW, 0o666, dir_fd=folder)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    reason = errno.EMLINK if status.st_nlink > 1 else errno.ENXIO
    raise OSError(reason, "it is not a singly linked regular file", str(path))


def move_file(source: Path, target: Path) -> None:
    """Rename a file; an existing target is replaced, also if it is a link."""
    with _named(target), open_folder(source.parent) as here, open_folder(target.parent, make=True) as there:
        os.replace(source.name, target.name, src_dir_fd=here, dst_dir_fd=there)


def remove_file(path: Path) -> None:
    """Remove a file, if it exists; of a link only the link is removed."""
    with _named(path), suppress(FileNotFoundError), open_folder(path.parent) as folder:
        os.unlink(path.name, dir_fd=folder)


def remove_tree(path: Path) -> None:
    """Remove a directory with its content, or a file or link, if it exists."""
    with _named(path), suppress(FileNotFoundError), open_folder(path.parent) as folder:
        if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(path.name, dir_fd=folder)
        else:
            os.unlink(path.name, dir_fd=folder)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Set the file name of errors to the full path instead of its last part."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _absolute(path: Path) -> Path:
    """Return the absolute path without `.` and `..`, taken literally: links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def _split(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the directory that may be reached through links, and the parts below it that must not be links."""
    absolute = _absolute(folder)
    root = next((root for root in reversed(_roots) if absolute.is_relative_to(root)), absolute)
    return root, absolute.relative_to(root).parts


def _enter(descriptor: int, part: str, folder: Path, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=descriptor)
    try:
        return os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(part, dir_fd=descriptor, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder)) from None
        raise


# Reading of untrusted files: only regular files of limited size, inside the directory they belong to.

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
    """Return the text of a file. Raises OSError, and ValueError if it is not UTF-8."""
    return read_untrusted(path).decode("utf-8")


def check_untrusted(path: Path) -> Path:
    """Check that a path is a regular file, for libraries that open files by path, and return it. Raises OSError."""
    os.close(open_untrusted(path, MAX_TABLE_BYTES))
    return path


def read_untrusted(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of a regular file. Raises OSError, or UntrustedFileError if irregular or above `max_bytes`."""
    descriptor = open_untrusted(path, max_bytes)
    with os.fdopen(descriptor, "rb") as stream:
        limit = min(max_bytes, os.fstat(descriptor).st_size + MAX_GROWTH_BYTES)  # `read` allocates this much
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise UntrustedFileError(f"{path} grows while it is read: it has more than {limit} bytes")
    return content


def open_untrusted(path: Path, max_bytes: int = MAX_BYTES) -> int:
    """Return a descriptor for reading a regular file, opened without blocking. Raises as `read_untrusted`."""
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
    """Return the path of `name` relative to `root`, which it must not leave, not even through links.

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
