"""Atomic writing: a name holds either the complete new content or what it held before.

Everything is written under a temporary name next to its target (`.name.1f2e3d4c.partial`), flushed to the disk, and
then renamed. After a failure the temporary file is removed; one that a killed process left is never read as a result,
and `remove_leftovers` removes it. No symbolic link is followed below a directory of `io.storage.confined`.
"""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cobre.errors import CobreError, OutputError
from cobre.io.storage.confined import create_file, make_folder, move_file, remove_file, remove_tree

_REASONS = {
    errno.ENOSPC: ("no space is left on the device", "free some space or choose another directory"),
    errno.EDQUOT: ("the disk quota is exceeded", "free some space or choose another directory"),
    errno.EFBIG: ("the file would exceed the size limit", "raise the limit (ulimit -f) or write elsewhere"),
    errno.EACCES: ("it is not writable", "choose a directory that you may write to"),
    errno.EPERM: ("it is not writable", "choose a directory that you may write to"),
    errno.EROFS: ("the file system is read-only", "choose a directory that you may write to"),
    errno.ENOTDIR: ("a part of its path is a file", "choose a path whose parents are directories"),
    errno.EISDIR: ("it is a directory", "choose the name of a file"),
    errno.ENAMETOOLONG: ("its name is too long", "choose a shorter name"),
    errno.ELOOP: (
        "it is a symbolic link or below one, and results are never written through a link",
        "remove the link, or choose another directory",
    ),
    errno.EMLINK: ("it is a hard link to a file elsewhere", "remove it, or choose another directory"),
    errno.ENXIO: ("it is a device, a pipe or a socket", "remove it, or choose another directory"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n)"),
}


class WriteError(OutputError):
    """A file or directory could not be written; `path` is the target, which is unchanged."""

    def __init__(self, path: Path, reason: str, remedy: str = "") -> None:
        super().__init__(f"cannot write {path}: {reason}" + (f" ({remedy})" if remedy else ""))
        self.path = path
        self.reason = reason
        self.remedy = remedy or OutputError.remedy


def check_writable(folder: Path) -> None:
    """Create the directory and a file in it, to fail before hours of computing. Raises WriteError."""
    with as_write_error(folder):
        make_folder(folder)
        probe = _temporary_beside(folder / "probe")
        with cleanup(lambda: remove_file(probe)), create_file(probe) as stream:
            stream.write(b"\0")


@contextmanager
def replacing_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, renamed to `path` when the block ends without an error. Raises WriteError."""
    with as_write_error(path):
        _require_regular_file(path)
        temporary = _temporary_beside(path)
        # Not tempfile.mkstemp, whose files only the owner can read: the umask decides who reads results.
        stream = create_file(temporary)
        with on_failure(lambda: remove_file(temporary)):
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            move_file(temporary, path)
            _flush_directory(path.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, completely or not at all. Raises WriteError."""
    with replacing_file(path) as stream:
        stream.write(data)


@contextmanager
def new_directory(path: Path, *, is_flushed: bool = True) -> Iterator[Path]:
    """Yield a directory to fill, renamed to `path` when the block ends without an error. Raises WriteError.

    `path` must not exist, or be an empty directory. is_flushed: False for thousands of small files that can be written
    again: flushing each of them to the disk takes longer than writing them.
    """
    with as_write_error(path):
        _refuse_occupied(path)
        with _temporary_directory(path) as temporary:
            yield temporary
            if is_flushed:
                flush_tree(temporary)
            temporary.replace(path)
            _flush_directory(path.parent)


@contextmanager
def scratch_directory(folder: Path) -> Iterator[Path]:
    """Yield a temporary directory inside `folder`, removed when the block ends."""
    with as_write_error(folder):
        scratch = _temporary_beside(folder / "scratch")
        make_folder(scratch)
        with cleanup(lambda: remove_tree(scratch)):
            yield scratch


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and directories of killed runs; call it only while no other run writes there."""
    for directory, folders, files in os.walk(folder):  # follows no links
        for name in (*folders, *files):
            if _TEMPORARY.fullmatch(name):
                remove_tree(Path(directory) / name)
        folders[:] = [name for name in folders if not _TEMPORARY.fullmatch(name)]


@contextmanager
def cleanup(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` when the block ends, with or without an error.

    If both the block and `action` fail, the error of the block is raised, with that of `action` as a note; with an
    ExitStack it would be the reverse.
    """
    with on_failure(action):
        yield
    action()


@contextmanager
def on_failure(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` when the block fails. The error of the block is raised; an error of `action` is a note to it."""
    try:
        yield
    except BaseException as error:
        try:
            action()
        except Exception as second:  # noqa: BLE001 - most likely a consequence of the first
            error.add_note(f"and then: {second}")
        raise


@contextmanager
def _temporary_directory(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_beside(path)
    temporary.mkdir()
    with on_failure(lambda: shutil.rmtree(temporary, ignore_errors=True)):
        yield temporary


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.partial")


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def _require_regular_file(path: Path) -> None:
    """Raise WriteError if a file would replace a device, a pipe or a directory."""
    if path.is_dir():
        raise WriteError(path, *_REASONS[errno.EISDIR])
    if path.exists() and not path.is_file():
        raise WriteError(path, "it is a device, a pipe or a socket", "choose the name of a file")


def _refuse_occupied(path: Path) -> None:
    if path.is_symlink():
        raise WriteError(path, *_REASONS[errno.ELOOP])
    if any(parent.exists() and not parent.is_dir() for parent in path.parents):
        raise WriteError(path, *_REASONS[errno.ENOTDIR])
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        kind = "is not empty" if path.is_dir() else "is a file"
        raise WriteError(path, f"it exists and {kind}", "choose a new directory")


def flush_tree(folder: Path) -> None:
    """Flush all files and directories of a tree: a name is durable only once its directory is flushed."""
    for entry in sorted(folder.rglob("*")):
        if entry.is_dir():
            _flush_directory(entry)
        else:
            _flush(entry, os.O_RDONLY)
    _flush_directory(folder)


def _flush_directory(folder: Path) -> None:
    _flush(folder, os.O_RDONLY | os.O_DIRECTORY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def as_write_error(path: Path) -> Iterator[None]:
    """Raise file-system errors about `path` or its folder as WriteError, with a reason and a remedy."""
    try:
        yield
    except CobreError:
        raise  # has a message already
    except OSError as error:
        if not _concerns(error, path):
            raise
        raise WriteError(path, *_reason(error, path)) from error


def _reason(error: OSError, path: Path) -> tuple[str, str]:
    """Return the reason of an error and a remedy."""
    if error.errno == errno.ENOENT and not path.parent.exists():
        return f"the directory {path.parent} does not exist", "create it first"
    return _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))


def _concerns(error: OSError, path: Path) -> bool:
    """Return whether an error is about `path`, not a file that the block reads.

    Errors of writes have no name, and those of copies two: of the source and of the copy.
    """
    names = [name for name in (error.filename, error.filename2) if name is not None]
    target = path.absolute()
    paths = [Path(os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)).absolute() for name in names]
    return not paths or any(named.is_relative_to(target.parent) or target.is_relative_to(named) for named in paths)
