"""Records which lines of the contract run, in every process of an environment, however the process ends.

Ranks and fork servers are often killed, or end in native code: what a process writes when it exits is lost then. Here
every line that runs sets a byte in a file that all processes map, at once. A `.pth` file starts the recorder, so it
depends neither on how a process was started nor on its environment variables.
"""

import ctypes
import json
import mmap
import os
import shutil
import sys
import threading
from pathlib import Path

INDEX = "index.json"
HITS = "hits"
INSTALLED = "measured.pth"


def install(site_packages: Path, folder: Path) -> None:
    """Start the recorder in every process whose interpreter has this `site-packages` folder."""
    shutil.copy(__file__, site_packages)
    name = Path(__file__).stem
    (site_packages / INSTALLED).write_text(f"import {name}; {name}.start({str(folder)!r})\n")


def remove(site_packages: Path) -> None:
    """Undo `install`."""
    for name in (INSTALLED, Path(__file__).name):
        (site_packages / name).unlink(missing_ok=True)


def prepare(folder: Path, sources: list[Path]) -> None:
    """Make the files that processes write to: byte `offset + line` is set when the line has run."""
    offsets, size = {}, 0
    for source in sources:
        offsets[str(source)] = size
        size += len(source.read_bytes().splitlines()) + 2  # numbered from 1, and a module may report line 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HITS).write_bytes(bytes(size))
    (folder / INDEX).write_text(json.dumps(offsets))


def lines_that_ran(folder: Path) -> dict[str, list[int]]:
    """Return the numbers of the lines that ran, by file."""
    offsets, hits = json.loads((folder / INDEX).read_text()), (folder / HITS).read_bytes()
    ends = [*list(offsets.values())[1:], len(hits)]
    return {
        path: [number for number, hit in enumerate(hits[begin:end]) if hit]
        for (path, begin), end in zip(offsets.items(), ends, strict=True)
    }


def start(folder: str) -> None:
    """Record the lines of this process, its threads and its forks from now on; nothing if no run is prepared."""
    try:
        offsets = json.loads((Path(folder) / INDEX).read_text())
        hits = _mapped(Path(folder) / HITS)
    except OSError:
        return
    trace = _tracer(hits, offsets)
    threading.settrace(trace)
    sys.settrace(trace)


def _tracer(hits, offsets):
    def recorder(begin):
        def record(frame, event, _argument):
            if event == "line":
                hits[begin + frame.f_lineno] = 1
            return record

        return record

    recorders = {path: recorder(begin) for path, begin in offsets.items()}

    def trace(frame, _event, _argument):
        return recorders.get(frame.f_code.co_filename)  # None: no events from this frame

    return trace


def _mapped(path: Path) -> memoryview:
    """Map a file, shared with all processes that map it. Keeps no descriptor, unlike `mmap.mmap`: tests count them."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    finally:
        os.close(descriptor)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"cannot map {path}")
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
