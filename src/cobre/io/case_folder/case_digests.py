"""Digests of the files of a case directory, by which changed files are found later."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from cobre.io.case_folder.case_files import known_files
from cobre.io.storage.untrusted_file import MAX_TABLE_BYTES, open_untrusted


def file_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every existing file of the case format, by its path inside the case."""
    found = {name: _digest(folder / name) for name in sorted(known_files())}
    return {name: digest for name, digest in found.items() if digest}


def differing_files(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Files that differ, or exist in only one of the two."""
    return [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]


def _digest(path: Path) -> str:
    """The SHA-256 of a file; empty if it is missing or cannot be read."""
    try:
        with os.fdopen(open_untrusted(path, MAX_TABLE_BYTES), "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
