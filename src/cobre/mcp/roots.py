"""The folders that the server was given. Whatever lies outside is neither read nor written, however it is spelled."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from cobre.errors import CobreError


class RefusedPathError(CobreError):
    """A path that the server does not use: it leads outside its folders, or to nothing."""


class Roots:
    """Paths are resolved first: `..` and symbolic links count for where they lead."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        if not self.folders:
            raise ValueError("the server needs at least one folder")
        for folder in self.folders:
            if not folder.is_dir():
                raise RefusedPathError(f"{folder} is not a folder")
        self._by_name = dict(_named(self.folders))

    def resolve(self, text: str) -> Path:
        """The path that a client means, existing or not; relative ones start in the first root."""
        if not text or "\0" in text:
            raise RefusedPathError("the path is empty or contains a zero byte")
        try:
            path = (self.folders[0] / text).resolve()
        except (OSError, RuntimeError) as error:  # a circle of links
            raise RefusedPathError(f"{text} cannot be resolved: {error}") from error
        return self.check(path, text)

    def check(self, path: Path, text: str = "") -> Path:
        """The resolved path, as long as it is inside."""
        resolved = path.resolve()
        if not any(resolved.is_relative_to(folder) for folder in self.folders):
            inside = ", ".join(map(str, self.folders))
            raise RefusedPathError(f"{text or path} is outside the folders that this server may use: {inside}")
        return resolved

    def folder(self, text: str) -> Path:
        """An existing folder inside the roots, reached through no link that leads outside."""
        path = self.resolve(text)
        if not path.is_dir():
            what = "is a file, not a folder" if path.exists() else "does not exist"
            raise RefusedPathError(f"{text} {what}")
        for link in links_in(path):
            self.check(link)
        return path

    def name_of(self, path: Path) -> tuple[str, str]:
        """The name of the folder that a path lies in, and the path within it; `.` is the folder itself."""
        name, root = next(entry for entry in self._by_name.items() if path.is_relative_to(entry[1]))
        return name, path.relative_to(root).as_posix()

    def named(self, name: str, relative: str) -> Path:
        """The folder that a name given by `name_of` stands for."""
        if name not in self._by_name:
            raise RefusedPathError(f"there is no folder {name!r}; there are {', '.join(self._by_name)}")
        return self.folder(str(self._by_name[name] / relative))


def links_in(folder: Path) -> Iterator[Path]:
    """All symbolic links below a folder."""
    for directory, folders, files in os.walk(folder):
        yield from (Path(directory, name) for name in (*folders, *files) if Path(directory, name).is_symlink())


def _named(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Roots by the last part of their path, numbered where two have the same."""
    taken: set[str] = set()
    for folder in folders:
        base = folder.name or "root"
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        yield name, folder
