"""A file that a library writes by path, and that gets its name when it is complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cobre.io.storage.atomic import WriteError, as_write_error, scratch_directory
from cobre.io.storage.confined import make_folder, move_file


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to, in a temporary directory beside `target`; renamed to `target` when the block ends.

    Raises WriteError if `target` exists or cannot be written; nothing is left after a failure.
    """
    if os.path.lexists(target):
        raise WriteError(target, "it exists", "choose a new name, or remove it first")
    with as_write_error(target):
        make_folder(target.parent)
        with scratch_directory(target.parent) as scratch:
            staged = scratch / target.name
            yield staged
            with staged.open("rb+") as stream:
                os.fsync(stream.fileno())
            move_file(staged, target)
