"""The heartbeat thread must not allocate: a fork would copy a locked allocator."""

import os
import shutil
import subprocess
import sys

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

# Counts allocations of all threads except the first one.
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
atomic_long allocated_elsewhere;
void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    if (syscall(SYS_gettid) != getpid()) atomic_fetch_add(&allocated_elsewhere, 1);
    return next(size);
}
"""

PROGRAM = """
import ctypes, os, sys, time
from pathlib import Path
from cobre.comm import ShmConfig, create_communicator

def wake_ups():
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    lines = [line for task in tasks for line in (task / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

def wait_for_heartbeats(count):
    target, deadline = wake_ups() + count, time.monotonic() + 30
    while wake_ups() < target:
        assert time.monotonic() < deadline, "the heartbeat thread does not wake up"
        time.sleep(0.01)

rank, name, counter = int(sys.argv[1]), sys.argv[2], ctypes.c_long.in_dll(ctypes.CDLL(None), "allocated_elsewhere")
with create_communicator(ShmConfig(name, rank, 2, timeout_s=20.0)) as comm:  # a heartbeat every 0.5 s
    comm.barrier()
    for _ in range(8):  # the thread allocates once, when it starts, which may be late on a busy machine
        before = counter.value
        wait_for_heartbeats(3)
        allocated = counter.value - before
        if not allocated:
            break
    print(allocated)
    comm.barrier()
"""


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to make a counting malloc with")
def test_heartbeats_allocate_nothing(tmp_path):
    source, library = tmp_path / "count.c", tmp_path / "count.so"
    source.write_text(COUNTER)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    command = [sys.executable, "-c", PROGRAM]
    environ = os.environ | {"LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc"}
    name = f"cobre-heartbeats-{os.getpid()}"
    ranks = [
        subprocess.Popen([*command, str(rank), name], env=environ, stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    printed = [rank.communicate(timeout=60)[0].strip() for rank in ranks]
    assert printed == ["0", "0"]
