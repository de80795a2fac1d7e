"""Program of the ranks of these tests: `mpiexec -n 3 python rank_program.py ACTION`."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cobre.comm import (
    AbortedError,
    AllocationFailedError,
    CollectiveFailedError,
    InitializationFailedError,
    MpiConfig,
    ReduceOp,
    create_communicator,
)
from cobre.comm.exit_report import ExitReport, attach_exit_report, exit_report_of

ODD = 1
FOR_EVER_S = 600


def everybody_but_one(comm, action):
    comm.barrier()
    if comm.rank == ODD:
        action(comm)
    else:
        comm.allreduce(np.ones(3), np.ones(3))


def raise_error(_comm):
    raise ValueError("no more water")


def raise_error_unread(_comm):
    """Fail while the launcher reads nothing; another process notes in ANSWER whether this one waits for it."""
    launcher = os.getppid()
    words = [sys.executable, __file__, "continue_launcher", str(os.getpid())]
    watcher = subprocess.Popen(words, stdout=subprocess.PIPE)
    watcher.stdout.readline()  # it looks by now: on a busy machine it starts later than this process would give up
    os.kill(launcher, signal.SIGSTOP)
    raise ValueError("no more water")


def continue_launcher(rank):
    """Continue the launcher once the rank has printed its reason, and could have aborted the job as well."""
    launcher = int(fields_of(rank)[1])
    print("looking", flush=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not unread_bytes(sys.stderr):
        time.sleep(0.001)
    time.sleep(0.2)
    Path(os.environ["ANSWER"]).write_text("gone" if fields_of(rank)[0] == "Z" else "waits")
    os.kill(launcher, signal.SIGCONT)


def fields_of(pid):
    """Return the fields of a process, state and parent first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def unread_bytes(stream):
    return int.from_bytes(fcntl.ioctl(stream, termios.FIONREAD, bytes(4)), sys.byteorder)


def raise_error_unprinted(_comm):
    os.close(sys.stderr.fileno())
    raise ValueError("no more water")


def raise_plain_error(comm):
    error = ValueError("no more water")
    attach_exit_report(error, ExitReport("the lake is empty", 7, origin=f"rank {comm.rank}" if comm.rank else ""))
    raise error


def kill(_comm):
    os.kill(os.getpid(), signal.SIGKILL)


def terminate(_comm):
    os.kill(os.getpid(), signal.SIGTERM)


def abort(comm):
    comm.abort("no more water")


def exit_with_3(_comm):
    sys.exit(3)


def leave(_comm):
    """Return while the others wait."""


def close(comm):
    comm.close()


def say(*words):
    """Print in one piece, so that ranks do not write into each other's lines."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def fail_inside(action):
    with create_communicator() as comm:
        everybody_but_one(comm, action)


def fail_outside(action):
    everybody_but_one(create_communicator(), action)


@contextmanager
def ended_plainly():
    """End as programs do that mark their errors: with a message and an exit code."""
    try:
        yield
    except (ValueError, AbortedError) as error:
        end = exit_report_of(error)
        if end.text:
            say(end.text)
        sys.exit(end.exit_code)


def fail_together(action):
    with ended_plainly(), create_communicator() as comm:
        comm.barrier()
        action(comm)


def fail_before_a_question(action):
    """Fail on one rank while the others call `check_failures`."""
    with ended_plainly(), create_communicator() as comm:
        comm.check_failures()
        if comm.rank == ODD:
            action(comm)
        comm.check_failures()


def interrupted(_action):
    with create_communicator() as comm:
        if comm.rank == ODD:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            comm.barrier()
        else:
            time.sleep(FOR_EVER_S)


def asked(_action):
    """Ask a rank that waits in a call for its report, repeatedly until it has answered; then both go on."""
    with create_communicator() as comm:
        pids = np.zeros(comm.size, np.int64)
        comm.allgatherv(np.array([os.getpid()]), pids, [1] * comm.size)
        answer = Path(os.environ["ANSWER"])
        if comm.rank == 0:
            os.dup2(os.open(answer, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), 2)
        else:
            ask_until_answered(int(pids[0]), answer)
        comm.barrier(label="alone")
    say("went on")


def ask_until_answered(pid, answer):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not has_answered(answer):
        os.kill(pid, signal.SIGUSR1)
        time.sleep(0.3)


def has_answered(answer):
    """Return whether both parts are there: a stack printed before stderr was redirected to the file is lost."""
    told = answer.read_text() if answer.exists() else ""
    return "now in #2" in told and "in asked" in told


def mpi_error(_action):
    """Make MPI raise an error: receive a message that is longer than its buffer."""
    with create_communicator() as comm:
        try:
            comm.broadcast(np.zeros(10_000 if comm.rank == 0 else 1))
        except CollectiveFailedError as error:
            say("MPI said", error.mpi_error_code > 0, error.operation)
            raise
        comm.barrier()


def orderly_exit(_action):
    with create_communicator() as comm:
        comm.barrier()
        sys.exit(0)


def no_close(_action):
    create_communicator().barrier()


def too_much(_action):
    """Ask for more memory than there is: refused on every rank, and the next call works."""
    with create_communicator() as comm:
        try:
            comm.create_shared_region(1 << 50, np.uint8)
        except AllocationFailedError as error:
            say("refused", error.requested_bytes == 1 << 50, "MiB free" in str(error))
        comm.barrier()


def many_of_each(_action):
    """Create and drop many regions and communicators: they are released, so their number has no limit."""
    with create_communicator() as comm:
        before = free_bytes()
        for _ in range(60):
            with comm.create_shared_region(1 << 20, np.uint8) as region:
                region.fence()
            comm.split_local().close()
        comm.barrier()
        held = len(comm._nodes._held), len(comm._windows._alive)
        say("lost little", before - free_bytes() < 30 << 20, max(held) <= 1)
    for _ in range(20):
        create_communicator().close()
    say("worlds", len(create_communicator()._group.communicators._held) <= 2)


def free_bytes():
    status = os.statvfs("/dev/shm")
    return status.f_bavail * status.f_frsize


def large(_action):
    """Move payloads beyond 32-bit counts; needs about 10 GiB."""
    with create_communicator(MpiConfig()) as comm:
        count = (5 << 29) // comm.size  # 2.5 GiB together
        recv = np.zeros(count * comm.size, np.uint8)
        comm.allgatherv(np.full(count, comm.rank + 1, np.uint8), recv, [count] * comm.size)
        right = all((recv[rank * count : (rank + 1) * count] == rank + 1).all() for rank in range(comm.size))
        if comm.rank == 0:
            recv[:] = 7
            recv[-1] = 9
        comm.broadcast(recv)
        right = right and recv[-1] == 9 and bool((recv[:-1] == 7).all())
        numbers = recv.view(np.uint64)
        comm.allreduce(numbers, numbers, ReduceOp.MAX)
        say("large", bool(right and recv[-1] == 9 and (recv[:-1] == 7).all()))


def beside_an_event_loop(_action):
    """Check that an event loop keeps the descriptor from which it reads signals."""

    async def main():
        heard = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, heard.set)
        with create_communicator() as comm:
            comm.barrier()
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.wait_for(heard.wait(), 30)
        say("heard")

    asyncio.run(main())


def in_a_thread(_action):
    thread = threading.Thread(target=orderly_exit, args=(None,))
    thread.start()
    thread.join()
    say("joined")


def many_sizes(_action):
    """Reduce more sizes than are cached."""
    with create_communicator() as comm:
        right = True
        for count in range(1, 300):
            total = np.zeros(count)
            comm.allreduce(np.full(count, comm.rank + 1.0), total)
            right = right and bool((total == 3.0).all())
        say("right", right)


def finalised(_action):
    from mpi4py import MPI

    MPI.Finalize()
    try:
        create_communicator("mpi")
    except InitializationFailedError as error:
        say("refused:", error)


WAYS = {
    way.__name__: way
    for way in (
        fail_inside,
        fail_outside,
        fail_together,
        fail_before_a_question,
        interrupted,
        asked,
        mpi_error,
        orderly_exit,
        no_close,
        too_much,
        many_of_each,
        large,
        beside_an_event_loop,
        in_a_thread,
        many_sizes,
        finalised,
    )
}

if __name__ == "__main__" and sys.argv[1] == "continue_launcher":
    continue_launcher(int(sys.argv[2]))
elif __name__ == "__main__":
    WAYS[sys.argv[1]](globals()[sys.argv[2]] if len(sys.argv) > 2 else None)
