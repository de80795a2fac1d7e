"""Decks as they are published: a folder, or a zip archive of its files.

Archives come from elsewhere. Their entries are written below one directory, by name and never by path; what would not
fit into memory limits, or is not an ordinary file, is refused before anything is unpacked.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cobre.bridge.errors import DeckNotConvertedError

CASE_INDEX = "caso.dat"  # names the other files of a deck, in both models
MAX_UNPACKED_BYTES = 2 << 30  # an official deck is about 30 MB, with all results about 700 MB
MAX_ENTRIES = 20_000
MAX_DEPTH = 2  # archives inside of an archive
_ENCRYPTED = 0x1


def is_archive(path: Path) -> bool:
    """Whether it is a file that holds a zip archive."""
    return path.is_file() and zipfile.is_zipfile(path)


@contextmanager
def unpacked_deck(deck: Path) -> Iterator[Path]:
    """The folder of a deck's files: the deck itself, or a temporary copy of what its archive holds.

    Raises DeckNotConvertedError for an archive that is damaged, holds no deck, or holds more than one.
    """
    if deck.is_dir():
        yield deck
        return
    with tempfile.TemporaryDirectory(prefix="cobre-deck-") as scratch:
        folders = unpack_decks(deck, Path(scratch))
        if len(folders) > 1:
            names = ", ".join(str(folder.relative_to(scratch)) for folder in folders)
            raise DeckNotConvertedError(
                f"{deck}: the archive holds {len(folders)} decks ({names}): unpack it, and name one"
            )
        yield folders[0]


def unpack_decks(archive: Path, target: Path) -> list[Path]:
    """Unpack an archive and the archives in it; returns the folders that hold a deck. Raises DeckNotConvertedError."""
    _unpack(archive, target, archive, MAX_DEPTH)
    folders = sorted({path.parent for path in target.rglob("*") if path.name.lower() == CASE_INDEX})
    if not folders:
        raise DeckNotConvertedError(f"{archive}: the archive holds no {CASE_INDEX}, which names the files of a deck")
    for folder in folders:
        if not (folder / CASE_INDEX).exists() or any(folder.glob("DADGER*")):
            _rename_to_lower_case(folder)
    return folders


def _unpack(archive: Path, target: Path, shown: Path, depth: int) -> None:
    if not is_archive(archive):
        raise DeckNotConvertedError(f"{shown}: neither a folder nor a zip archive")
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            _check_entries(shown, entries)
            for entry in entries:
                _write_entry(opened, entry, target)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise DeckNotConvertedError(f"{shown}: the archive cannot be unpacked: {error}") from error
    inner = [path for path in sorted(target.rglob("*")) if path.suffix.lower() == ".zip" and is_archive(path)]
    for path in inner if depth else ():
        _unpack(path, path.with_suffix(""), Path(f"{shown}/{path.name}"), depth - 1)
        path.unlink()


def _check_entries(shown: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise DeckNotConvertedError(
            f"{shown}: more than {MAX_ENTRIES} files or {MAX_UNPACKED_BYTES >> 30} GB: this is no deck"
        )
    for entry in entries:
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if not parts or ".." in parts or parts[0] == "/" or ":" in parts[0]:
            raise DeckNotConvertedError(f"{shown}: an entry lies outside of the archive: {entry.filename!r}")
        if entry.flag_bits & _ENCRYPTED:
            raise DeckNotConvertedError(f"{shown}: {entry.filename!r} is encrypted: unpack it with its password")


def _write_entry(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    path = target.joinpath(*PurePosixPath(entry.filename.replace("\\", "/")).parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(entry) as source, path.open("xb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)


def _rename_to_lower_case(folder: Path) -> None:
    """The bridges look for DECOMP files by names in lower case; names that would collide stay as they are."""
    for path in sorted(folder.iterdir()):
        lower = path.with_name(path.name.lower())
        if path.is_file() and not lower.exists():
            path.rename(lower)
