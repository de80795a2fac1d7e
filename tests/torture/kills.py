"""Ranks, launchers and reapers killed at random instants."""

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from forked_worlds import SHM, fork_world, shm_environment, tcp_environment
from left_processes import kill_leftover_processes, read
from tally import Tally

LAUNCHED = Path(__file__).with_name("launched.py")
SIZE = 3
ENDED_S = 120.0
LISTENERS = Path("/proc/net/unix")
MARK = "COBRE_TORTURE"


def work(comm):
    """Create regions, collectives and splits repeatedly, to hit every moment in which a name could be leaked."""
    total = 0.0
    for turn in range(40):
        with comm.create_shared_region(500 + turn, np.float64) as region:
            if comm.is_leader:
                region.as_mut_array()[:] = turn
            region.fence()
            total += float(region.as_array()[0])
        out = np.empty(64)
        comm.allreduce(np.full(64, comm.rank + 1.0), out)
        total += float(out[0])
        if turn % 10 == 0:
            with comm.split_local() as inner:
                inner.barrier()
    return total


def expected_work(size):
    return float(sum(range(40)) + 40 * size * (size + 1) // 2)


def forked_kills(backend, count, rng, *, kills_all=False, rendezvous="socket"):
    who = "all ranks" if kills_all else "one rank"
    tally = Tally(f"{backend}: {who} killed, no launcher{', met by name' if rendezvous == 'name' else ''}")
    for _ in range(count):
        environments = shm_environment(SIZE, rendezvous=rendezvous) if backend == "shm" else tcp_environment(SIZE)
        # Half of them while ranks meet, half in the midst of regions and collectives; half with ranks that come late.
        late = rng.random() * 0.02 if rng.random() < 0.5 else 0.0
        world = fork_world(environments, work, [0.0, rng.random() * late, rng.random() * late])
        time.sleep(rng.random() * (0.04 if rng.random() < 0.5 else 0.6))
        victims = list(range(SIZE)) if kills_all else [rng.choice([0, 0, 1, 2])]
        for rank in victims:
            world.kill(rank)
        tally.trials += 1
        hung = world.wait()
        if hung:
            tally.add("hangs", f"ranks {hung} after the death of {victims}")
        _judge(tally, world, {*victims, *hung})
        if kills_all and rendezvous == "name" and _names():
            tally.stale += 1  # no process remained to remove it; the next start does
            fork_world(shm_environment(2), lambda comm: comm.barrier()).wait()
        _count_names(tally)
        if world.name and f"/{world.name}\n" in LISTENERS.read_text():
            tally.add("leaks", f"the socket of {world.name}")
    return tally


def _count_names(tally, words=""):
    for name in _names():
        tally.add("leaks", f"{name} in /dev/shm{words}")
        (SHM / name).unlink(missing_ok=True)


def _judge(tally, world, victims):
    for number, rank in enumerate(world.ranks):
        report = rank.report
        if number in victims:
            continue
        if report is None:
            tally.add("other", f"rank {number} ended without an error, status {rank.status}")
        elif "value" in report:
            if report["value"] != expected_work(SIZE):
                tally.add("wrong bits", f"rank {number} computed {report['value']}")
        elif report["error"] == "unexpected":
            tally.add("other", report["text"])
        elif not any(f"rank {victim}" in report["text"] for victim in victims):
            tally.add("unnamed ranks", f"rank {number} says {report['text']!r}, rank {victims} was killed")


def _names():
    return sorted(name.name for name in SHM.iterdir())


def launched_kills(backend, count, rng):
    """Kill a rank, the fork server, the launcher, or it and its orphan reaper; ranks have started processes."""
    tally = Tally(f"{backend}: killed, with our launcher")
    for _ in range(count):
        mark = secrets.token_hex(8)
        what = rng.choice(["rank", "fork server", "launcher", "both", "both"])
        process = subprocess.Popen(
            [sys.executable, str(LAUNCHED), backend],
            env=os.environ | {MARK: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        began = time.monotonic()
        if rng.random() < 0.3:
            _await_first_end(process)
            time.sleep(rng.random() * 0.01)
        else:
            time.sleep(rng.random() * 2.5)
        after_s = time.monotonic() - began
        _kill_launched(process.pid, what, rng)
        tally.trials += 1
        try:
            _, words = process.communicate(timeout=ENDED_S)
        except subprocess.TimeoutExpired:
            tally.add("hangs", f"the launcher, after the death of {what}")
            process.kill()
            _, words = process.communicate()
        if what in ("rank", "fork server") and process.returncode not in (0, -signal.SIGKILL) and "rank" not in words:
            tally.add("unnamed ranks", words[-300:])
        for words in kill_leftover_processes(mark, ENDED_S):
            tally.add("leaks", f"after the death of {what} {after_s:.3f} s after the start: {words}")
        _count_names(tally, f" after the death of {what}")
    return tally


def _kill_launched(launcher, what, rng):
    children = _children(launcher)
    reapers = [pid for pid in children if b"orphan_reaper" in read(pid, "cmdline")]
    servers = [pid for pid in children if b"fork-server" in read(pid, "cmdline")]
    ranks = [rank for pid in servers for rank in _children(pid)]
    ranks += [pid for pid in children if pid not in reapers and pid not in servers]
    candidates = {"rank": ranks, "fork server": servers, "launcher": [launcher], "both": [*reapers, launcher]}[what]
    if not candidates:
        candidates = [launcher]  # it has not started any yet
    for pid in candidates if what == "both" else [rng.choice(candidates)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _await_first_end(launcher):
    """Wait until one of its ranks has ended: the launcher is busy then, and processes of that rank still run."""
    most = 0
    while launcher.poll() is None:
        servers = [pid for pid in _children(launcher.pid) if b"fork-server" in read(pid, "cmdline")]
        running = [pid for server in servers for pid in _children(server) if b") Z" not in read(pid, "stat")]
        if len(running) < most:
            return
        most = len(running)


def _children(pid):
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def all_kills(scale, seed):
    rng = random.Random(seed)
    yield forked_kills("shm", round(190 * scale), rng)
    yield forked_kills("shm", round(50 * scale), rng, kills_all=True)
    yield forked_kills("shm", round(30 * scale), rng, rendezvous="name")
    yield forked_kills("shm", round(30 * scale), rng, kills_all=True, rendezvous="name")
    yield launched_kills("shm", round(60 * scale), rng)
    yield forked_kills("tcp", round(70 * scale), rng)
    yield launched_kills("tcp", round(30 * scale), rng)


def all_launched_kills(scale, seed):
    """Repeat only the kills of launched worlds, to find rare failures."""
    rng = random.Random(seed)
    yield launched_kills("shm", round(60 * scale), rng)
    yield launched_kills("tcp", round(30 * scale), rng)
