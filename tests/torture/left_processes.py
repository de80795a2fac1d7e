"""Processes that outlive their run: found by a mark in their environment, described from /proc."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
WAYS = ("pipe:", "socket:", "anon_inode:[pidfd]")


def read(pid, name):
    with suppress(OSError):
        return (PROC / str(pid) / name).read_bytes()
    return b""


def marked_processes(mark):
    return [int(path.name) for path in PROC.glob("[0-9]*") if mark.encode() in read(path.name, "environ")]


def kill_leftover_processes(mark, limit_s, report_after_s=10.0):
    """Describe and kill each process that inherited the mark and does not end by itself within the limit.

    A late process is described immediately, before it can end or its pid be reused.
    """
    began, late = time.monotonic(), {}
    while left := marked_processes(mark):
        waited_s = time.monotonic() - began
        if waited_s > report_after_s and not late:
            late = {pid: describe(pid) for pid in left}
            for description in late.values():
                print(f"still there after {waited_s:.0f} s: {description}", flush=True)
        if waited_s > limit_s:
            break
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [late.get(pid) or describe(pid) for pid in left]


def describe(pid):
    """Describe a process: command, parent, group, state, and what it waits for."""
    command = read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    status = dict(line.split(":\t", 1) for line in read(pid, "status").decode().splitlines() if ":\t" in line)
    parent, group = _parent_and_group(pid)
    masks = " ".join(f"{name}={status.get(name, '?')}" for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"))
    return (
        f"process {pid} ({status.get('Name')}: {command}), state {status.get('State')}, group {group}, "
        f"child of {parent} ({read(parent, 'comm').decode().strip()}), {masks}; "
        f"threads: {_threads(pid)}; open: {_ways(pid)}"
    )


def _parent_and_group(pid):
    fields = read(pid, "stat").decode().rpartition(")")[2].split()
    return (int(fields[1]), int(fields[2])) if len(fields) > 2 else (0, 0)


def _threads(pid):
    threads = []
    for task in sorted((PROC / str(pid) / "task").glob("*")):
        place = read(pid, f"task/{task.name}/wchan").decode() or "?"
        stack = " < ".join(read(pid, f"task/{task.name}/stack").decode().split("\n")[:4])
        call = read(pid, f"task/{task.name}/syscall").decode().split(" ")[0].strip()
        threads.append(f"{task.name} in {place} (call {call}) {stack}".strip())
    return "; ".join(threads)


def _ways(pid):
    """Return its pipes and sockets, each with the other processes that have it open."""
    links = _links(pid)
    holders = {}
    for path in PROC.glob("[0-9]*"):
        if path.name != str(pid):
            for link in set(_links(path.name).values()) & set(links.values()):
                holders.setdefault(link, []).append(path.name)
    return ", ".join(f"{number}={link} (also in {holders.get(link, [])})" for number, link in links.items())


def _links(pid):
    links = {}
    for descriptor in (PROC / str(pid) / "fd").glob("*"):
        with suppress(OSError):
            if (link := str(descriptor.readlink())).startswith(WAYS):
                links[descriptor.name] = link
    return links
