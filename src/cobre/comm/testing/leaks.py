"""Leak checks: processes, descriptors and shared memory segments, before and after.

Processes inherit a mark in their environment, so that orphans are found too.
"""

import os
import secrets
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cobre.comm import cores

MARK_VARIABLE = "COBRE_TESTING_MARK"
SHM_FOLDER = Path(cores.SHM_FOLDER)
SHM_PREFIX = "cobre"
PROC = Path("/proc")
SETTLE_S = 5.0  # for processes that are about to end, and for what other programs create and remove


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Snapshot of processes with the mark, this process's descriptors, and names of segments."""

    processes: frozenset[str]
    descriptors: frozenset[str]
    segments: frozenset[str]

    @classmethod
    def take(cls, mark: str) -> Self:
        """Record the present state of this machine and process."""
        return cls(frozenset(_marked_processes(mark)), frozenset(_descriptors()), segment_names())

    def beyond(self, before: Self) -> list[str]:
        """Describe what exists in this snapshot but not in the one before."""
        return [
            *(f"process {process}" for process in sorted(self.processes - before.processes)),
            *(f"descriptor {descriptor}" for descriptor in sorted(self.descriptors - before.descriptors)),
            *(f"shared memory {name}" for name in sorted(self.segments - before.segments)),
        ]


class LeakCheck:
    """Comparison of the end of a world with its beginning; `environment` marks the world's processes."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self._before = Snapshot.take(self._mark)
        self._foreign: set[str] = set()  # segments seen to have another owner

    @property
    def environment(self) -> dict[str, str]:
        """Variables for every process that is started: the mark."""
        return {MARK_VARIABLE: self._mark}

    def leaks(self, settle_s: float = SETTLE_S) -> list[str]:
        """Return descriptions of leaks.

        Other programs may run here: only what remains for `settle_s` seconds, and is ours, counts.
        """
        ended = time.time()
        deadline = time.monotonic() + settle_s
        leaked = self._look(ended)
        while leaked and time.monotonic() < deadline:
            time.sleep(0.02)
            leaked = [leak for leak in self._look(ended) if leak in leaked]
        return leaked

    def _look(self, ended: float) -> list[str]:
        now = Snapshot.take(self._mark)
        new = now.segments - self._before.segments - self._foreign
        if not now.processes:  # then what is younger than the end of our processes cannot be ours
            self._foreign |= {name for name in new if _changed_at(name) > ended}
        self._foreign |= _used_by_others(new, self._mark)
        return replace(now, segments=now.segments - self._foreign).beyond(self._before)


@contextmanager
def no_leaks(settle_s: float = SETTLE_S) -> Iterator[LeakCheck]:
    """Raise `AssertionError` at the end of the block if something was left behind."""
    check = LeakCheck()
    yield check
    leaked = check.leaks(settle_s)
    if leaked:
        raise AssertionError(f"left behind: {', '.join(leaked)}")


def segment_names() -> frozenset[str]:
    """Return the names of our segments that exist now."""
    entries = SHM_FOLDER.iterdir() if SHM_FOLDER.is_dir() else ()
    return frozenset(entry.name for entry in entries if entry.name.startswith(SHM_PREFIX))


def _descriptors() -> Iterator[str]:
    folder = PROC / "self" / "fd"
    if not folder.is_dir():
        return
    for entry in list(folder.iterdir()):
        try:
            target = entry.readlink()
        except OSError:
            continue  # the descriptor of the listing itself
        yield f"{entry.name} -> {target}"


def _marked_processes(mark: str) -> Iterator[str]:
    for folder in _other_processes():
        with suppress(OSError):  # gone, or another user's
            if _has_mark(folder, mark):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                yield f"{folder.name} ({command[:80]})"


def _changed_at(segment: str) -> float:
    """Return when it was made or last changed; 0 if it does not exist any more."""
    try:
        return (SHM_FOLDER / segment).stat().st_ctime
    except OSError:
        return 0.0


def _used_by_others(segments: Set[str], mark: str) -> frozenset[str]:
    """Return the segments that processes without the mark have mapped or open, or name in their environment."""
    used: set[str] = set()
    for folder in _other_processes() if segments else ():
        with suppress(OSError):
            if not _has_mark(folder, mark):
                mentions = _mentions(folder)
                used |= {name for name in segments if name in mentions}
    return frozenset(used)


def _mentions(folder: Path) -> str:
    """Return the mappings, open files and environment of a process, in which the name of a segment could appear."""
    links = []
    for entry in (folder / "fd").iterdir():
        with suppress(OSError):  # closed by now
            links.append(str(entry.readlink()))
    maps = (folder / "maps").read_text(errors="replace")
    return "\n".join([maps, (folder / "environ").read_text(errors="replace"), *links])


def _other_processes() -> list[Path]:
    return [folder for folder in PROC.glob("[0-9]*") if folder.name != str(os.getpid())]


def _has_mark(folder: Path, mark: str) -> bool:
    return f"{MARK_VARIABLE}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
