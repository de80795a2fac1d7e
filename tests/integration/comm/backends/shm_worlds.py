"""Ranks on one machine started without a launcher, and views of their rendezvous from outside."""

import os
import secrets
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from processes import start_python

SHM = Path("/dev/shm")
NOBODY = 65534
LAYOUT_AT = 8  # where the segment's header has the version of its layout
ATTACHED_AT = 72  # where the segment's header counts the ranks that have joined

JOIN = """
import numpy as np
from cobre.comm import BackendError, CommError, create_communicator
try:
    with create_communicator() as comm:
        print("joined", flush=True)
        TURN
except (BackendError, CommError) as error:
    print(type(error).__name__, error, flush=True)
"""


def start_rank(name, rank, size=2, turn="comm.barrier()", wrapper=(), stdin=subprocess.DEVNULL, **options):
    variables = {"NAME": name, "RANK": str(rank), "SIZE": str(size), "CONNECT_TIMEOUT_SECS": "20"} | options
    environ = os.environ | {f"COBRE_SHM_{key}": value for key, value in variables.items()}
    program = JOIN.replace("TURN", turn)
    if wrapper:
        command = [*wrapper, sys.executable, "-c", program]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return start_python("-c", program, env=environ, stdin=stdin)


def names(prefix):
    return sorted(path.name for path in SHM.iterdir() if path.name.startswith(prefix))


def is_joining(name):
    """Return whether rank 0 waits for others under this name, in the kernel or in /dev/shm."""
    return bool(names(name)) or f"@cobre-shm/{os.geteuid()}/{name}\n" in Path("/proc/net/unix").read_text()


def address_of(name):
    """Return the address at which rank 0 listens."""
    return f"\0cobre-shm/{os.geteuid()}/{name}"


def joined_ranks(name):
    """Return how many ranks have joined, read from the segment itself."""
    try:
        with segment_of(name) as stream:
            return int.from_bytes(os.pread(stream.fileno(), 4, ATTACHED_AT), sys.byteorder)
    except ConnectionRefusedError:
        return 0


def segment_of(name):
    """Open the segment as a file: rank 0 gives it to every process of its user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(address_of(name))
        _, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
    return os.fdopen(descriptors[0], "r+b")


@contextmanager
def fresh_name():
    """Yield an unused name for a world, and remove all its files afterwards."""
    name = f"cobre-test-{secrets.token_hex(6)}"
    yield name
    for leftover in names(name):
        (SHM / leftover).unlink(missing_ok=True)
