"""Decks as they are published: a folder, or a zip archive of its files.

Archives are untrusted. Their entries are written below one directory, by name and never by path; what would not
fit into memory limits, or is not an ordinary file, is refused before anything is unpacked. Publications write the
names of files in upper, lower or mixed case, and put them into a folder or not; the bridges get them in lower case.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cobre.bridge.environment import DeckNotConvertedError

CASE_INDEX = "caso.dat"  # names the other files of a deck, in both models
MAX_UNPACKED_BYTES = 2 << 30  # an official deck is about 30 MB, with all results about 700 MB
MAX_ENTRIES = 20_000
MAX_DEPTH = 2  # archives inside an archive
_ENCRYPTED = 0x1


def is_archive(path: Path) -> bool:
    """Return whether the path is a zip archive."""
    return path.is_file() and zipfile.is_zipfile(path)


@contextmanager
def unpacked_deck(deck: Path) -> Iterator[Path]:
    """Yield the folder of a deck's files: the deck, a folder in it, or a temporary copy of its archive's content.

    Raises DeckNotConvertedError for an archive that is damaged, and for a folder or archive without a
    deck or with more than one.
    """
    with tempfile.TemporaryDirectory(prefix="cobre-deck-") as scratch:
        is_folder = deck.is_dir()
        folders = deck_folders(deck) if is_folder else unpack_decks(deck, Path(scratch))
        if len(folders) > 1:
            kind, root = ("folder", deck) if is_folder else ("archive", Path(scratch))
            names = ", ".join(str(folder.relative_to(root)) for folder in folders)
            remedy = "name one of them" if is_folder else "unpack it, and name one"
            raise DeckNotConvertedError(f"{deck}: the {kind} holds {len(folders)} decks ({names}): {remedy}")
        if is_folder and not folders:
            raise DeckNotConvertedError(f"{deck}: the folder holds no {CASE_INDEX}, which names the files of a deck")
        if is_folder and any(path.name != path.name.lower() for path in folders[0].iterdir()):
            folders = [_linked_in_lower_case(folders[0], Path(scratch) / "deck")]
        _check_index(deck, folders[0] / CASE_INDEX)
        yield folders[0]


def deck_folders(root: Path) -> list[Path]:
    """Return the folder itself if it holds a deck, else those below it that do; results below a deck are not a deck."""
    folders = sorted({path.parent for path in root.rglob("*") if path.name.lower() == CASE_INDEX and path.is_file()})
    return [folder for folder in folders if not any(other in folder.parents for other in folders)]


def unpack_decks(archive: Path, target: Path) -> list[Path]:
    """Unpack an archive, and the archives in it if it holds no deck itself; returns the folders that hold a deck.

    Raises DeckNotConvertedError.
    """
    _unpack(archive, target, archive, MAX_DEPTH)
    folders = deck_folders(target)
    if not folders:
        raise DeckNotConvertedError(f"{archive}: the archive holds no {CASE_INDEX}, which names the files of a deck")
    for folder in folders:
        _rename_to_lower_case(folder)
    return folders


def _check_index(named_path: Path, index: Path) -> None:
    """Refuse a deck whose first file is empty: the bridges would stop without a reason."""
    if not index.read_bytes().split():
        raise DeckNotConvertedError(
            f"{named_path}: {CASE_INDEX} is empty: it names the list of the deck's files, such as arquivos.dat or rv0"
        )


def _linked_in_lower_case(folder: Path, target: Path) -> Path:
    """Create a folder of links to a deck's files, which are not changed. Names that would collide are left out."""
    target.mkdir()
    for path in sorted(folder.iterdir(), key=lambda path: (path.name != path.name.lower(), path.name)):
        link = target / path.name.lower()
        if path.is_file() and not link.exists():
            link.symlink_to(path.resolve())
    return target


def _unpack(archive: Path, target: Path, named_path: Path, depth: int) -> None:
    if not is_archive(archive):
        raise DeckNotConvertedError(f"{named_path}: neither a folder nor a zip archive")
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            _check_entries(named_path, entries)
            for entry in entries:
                _write_entry(opened, entry, target)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise DeckNotConvertedError(f"{named_path}: the archive cannot be unpacked: {error}") from error
    if depth == 0 or deck_folders(target):
        return  # archives next to a deck are its results or documents
    for path in [path for path in sorted(target.rglob("*")) if path.suffix.lower() == ".zip" and is_archive(path)]:
        folder = path.with_suffix("")
        while folder.exists():
            folder = folder.with_name(f"{folder.name}_")
        _unpack(path, folder, Path(f"{named_path}/{path.name}"), depth - 1)
        path.unlink()


def _check_entries(named_path: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise DeckNotConvertedError(
            f"{named_path}: more than {MAX_ENTRIES} files or {MAX_UNPACKED_BYTES >> 30} GB: this is not a deck"
        )
    for entry in entries:
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if not parts or ".." in parts or parts[0] == "/" or ":" in parts[0]:
            raise DeckNotConvertedError(f"{named_path}: an entry is outside of the archive: {entry.filename!r}")
        if entry.flag_bits & _ENCRYPTED:
            raise DeckNotConvertedError(f"{named_path}: {entry.filename!r} is encrypted: unpack it with its password")


def _write_entry(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    path = target.joinpath(*PurePosixPath(entry.filename.replace("\\", "/")).parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(entry) as source, path.open("wb") as sink:  # of two entries of one name the later one counts
        shutil.copyfileobj(source, sink, 1 << 20)


def _rename_to_lower_case(folder: Path) -> None:
    """Rename files to lower case, as the bridges expect them; names that would collide stay as they are."""
    for path in sorted(folder.iterdir()):
        lower = path.with_name(path.name.lower())
        if path.is_file() and not lower.exists():
            path.rename(lower)
