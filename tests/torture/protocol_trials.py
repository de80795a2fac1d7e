"""Random programs, calls that disagree, strangers on the port, and another user of the machine."""

import os
import random
import secrets
import shutil
import socket
import subprocess
import threading

import numpy as np
from forked_worlds import SHM, fork_world, shm_environment, tcp_environment
from tally import Tally

from cobre.comm.backends.tcp.rendezvous.handshake import RefusedError
from cobre.comm.testing.cases.failures import DISAGREEMENTS
from cobre.comm.testing.steps import expected_digest, run_program

PROGRAM_LENGTH = 30
NOBODY = 65534
PLAIN_PYTHON = "/usr/bin/python3"  # one that every user may run


def random_programs(backend, count, seed):
    tally = Tally(f"{backend}: random programs")
    sizes = {"local": (1,)}.get(backend, (2, 3))
    for size in sizes:
        seeds = range(seed, seed + count // len(sizes))
        make = {"shm": shm_environment, "tcp": tcp_environment}.get(
            backend, lambda _: [{"COBRE_COMM_BACKEND": "local"}]
        )
        world = fork_world(make(size), lambda comm, seeds=seeds: [run_program(comm, s, PROGRAM_LENGTH) for s in seeds])
        if hung := world.wait(600.0):
            tally.add("hangs", f"ranks {hung}")
        expected = [expected_digest(size, s, PROGRAM_LENGTH) for s in seeds]
        tally.trials += len(seeds)
        for number, rank in enumerate(world.ranks):
            if not rank.report or "value" not in rank.report:
                tally.add("other", f"rank {number}: {rank.report}")
                continue
            for program, digest, right in zip(seeds, rank.report["value"], expected, strict=True):
                if digest != right:
                    tally.add("wrong bits", f"program {program} on rank {number} of {size}")
    return tally


def mismatches(backend, count, rng):
    tally = Tally(f"{backend}: calls that disagree")
    make = shm_environment if backend == "shm" else tcp_environment
    names = sorted(DISAGREEMENTS)
    for _ in range(count):
        about = rng.choice(names)
        disagreement, size = DISAGREEMENTS[about], 3

        def call(comm, disagreement=disagreement):
            comm.barrier()
            recv = np.zeros(4 << 20, np.uint8)
            (disagreement.odd if comm.rank == comm.size - 1 else disagreement.usual)(comm, recv)
            return int(recv.any())

        world = fork_world(make(size), call)
        tally.trials += 1
        if hung := world.wait():
            tally.add("hangs", f"ranks {hung}: {about}")
        for number, rank in enumerate(world.ranks):
            report = rank.report or {}
            if "value" in report:
                tally.add("wrong bits", f"rank {number} got data: {about}")
            elif report.get("error") != "MismatchedCallError":
                tally.add("other", f"rank {number}: {about}: {report}")
            elif not ("rank 0" in report["text"] and f"rank {size - 1}" in report["text"]):
                tally.add("unnamed ranks", f"rank {number}: {report['text']}")
    return tally


def strangers(count, rng):
    """Send garbage, silence, half a frame and a false refusal, before and while the ranks meet."""
    tally = Tally("tcp: strangers on the port")
    for _ in range(count):
        environments = tcp_environment(2)
        address = environments[0]["COBRE_TCP_COORDINATOR"], int(environments[0]["COBRE_TCP_PORT"])
        for environment in environments:
            environment["COBRE_TCP_CONNECT_TIMEOUT_SECS"] = "30"
        end = threading.Event()
        if rng.random() < 0.3:
            worker = fork_world(environments[1:], lambda comm: float(comm.rank))
            false_coordinator = socket.create_server(address)  # after the fork: the worker must not hold it open
            connection, _ = false_coordinator.accept()
            connection.sendall(RefusedError("go home\x1b]0;owned\x07").frame())
            connection.close()
            false_coordinator.close()
            world = fork_world(environments[:1], lambda comm: float(comm.rank))
            world.ranks += worker.ranks
        else:
            world = fork_world(environments, lambda comm: float(comm.rank))
        noise = [threading.Thread(target=_disturb, args=(address, end, rng.random()), daemon=True) for _ in range(4)]
        for thread in noise:
            thread.start()
        hung = world.wait()
        end.set()
        for thread in noise:
            thread.join()
        tally.trials += 1
        if hung:
            tally.add("hangs", f"ranks {hung}")
        for number, rank in enumerate(world.ranks):
            if (rank.report or {}).get("value") != float(number):
                tally.add("other", f"rank {number}: {rank.report}")
    return tally


def _disturb(address, end, seed):
    rng = random.Random(seed)
    while not end.is_set():
        try:
            with socket.create_connection(address, timeout=0.5) as sock:
                sock.sendall(rng.choice([b"", b"GET / HTTP/1.0\r\n\r\n", rng.randbytes(300), b"\x16\x03\x01\x02"]))
                end.wait(rng.random() * 0.05)
        except OSError:
            end.wait(0.01)


AS_NOBODY = """
import os, socket, sys
name, mode, address = sys.argv[1:]
path = "/dev/shm/" + name
if mode == "socket":
    place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.bind("\\0" + address)
    place.listen()
else:
    os.umask(0)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, int(mode, 8))
    os.ftruncate(descriptor, 1 << 24)
print("there", flush=True)
sys.stdin.read()
if mode != "socket":
    os.unlink(path)
"""


def another_user(count, rng):
    """Let another user occupy the name of a world: the error names that user, and nothing is disclosed."""
    tally = Tally("shm: another local user")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        tally.note = "skipped: needs root and setpriv"
        return tally
    for _ in range(count):
        name, mode = f"tt-{secrets.token_hex(6)}", rng.choice(["0666", "0600", "0644", "socket"])
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", PLAIN_PYTHON]
        address = f"cobre-shm/{os.geteuid()}/{name}"
        stranger = subprocess.Popen(
            [*user, "-c", AS_NOBODY, name, mode, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stranger.stdout.readline()
        world = fork_world(shm_environment(2, name), lambda comm: comm.rank)
        hung = world.wait()
        tally.trials += 1
        if hung:
            tally.add("hangs", f"ranks {hung}, mode {mode}")
        if mode != "socket" and any((SHM / name).read_bytes()):
            tally.add("wrong bits", "something was written into another user's segment")
        for number, rank in enumerate(world.ranks):
            text = (rank.report or {}).get("text", "")
            if name not in text or f"user {NOBODY}" not in text:
                tally.add("other", f"rank {number}, mode {mode}: {rank.report}")
        stranger.communicate()
    return tally


def all_protocol_trials(scale, seed):
    rng = random.Random(seed)
    for backend in ("local", "shm", "tcp"):
        yield random_programs(backend, max(2, round(600 * scale)), seed)
    yield mismatches("shm", round(300 * scale), rng)
    yield mismatches("tcp", round(300 * scale), rng)
    yield strangers(max(1, round(40 * scale)), rng)
    yield another_user(max(1, round(20 * scale)), rng)
