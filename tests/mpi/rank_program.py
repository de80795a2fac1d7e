"""Program of the ranks of these tests: `mpiexec -n 3 python rank_program.py SCENARIO [ACTION]`."""

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
DEADLINE_S = 30
POLLS = 100  # of the loop in which a failed rank waits for its launcher to read its output


def all_but_one_reduce(comm, action):
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
    command = [sys.executable, __file__, "continue_launcher", str(os.getpid())]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE)
    watcher.stdout.readline()  # on a busy machine it may start later than this process would give up
    os.kill(launcher, signal.SIGSTOP)
    raise ValueError("no more water")


def continue_launcher(rank):
    """Continue the launcher once the rank has printed its reason, and has ended or polled its output since."""
    launcher = int(status_of(rank)["PPid"])
    print("looking", flush=True)
    wait_until(lambda: unread_bytes(sys.stderr))
    sleeps = sleeps_of(rank)
    wait_until(lambda: has_ended(rank) or sleeps_of(rank) > sleeps + POLLS)
    Path(os.environ["ANSWER"]).write_text("gone" if has_ended(rank) else "waits")
    os.kill(launcher, signal.SIGCONT)


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and not condition():
        time.sleep(0.001)


def status_of(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def has_ended(pid):
    return status_of(pid)["State"].startswith("Z")


def sleeps_of(pid):
    """Return how many times the main thread of a process has given up its core to wait."""
    return int(status_of(pid)["voluntary_ctxt_switches"])


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


def print_line(*words):
    """Print in one piece, so that ranks do not write into each other's lines."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def fail_inside(action):
    with create_communicator() as comm:
        all_but_one_reduce(comm, action)


def fail_outside(action):
    all_but_one_reduce(create_communicator(), action)


@contextmanager
def ended_plainly():
    """End as programs do that mark their errors: with a message and an exit code."""
    try:
        yield
    except (ValueError, AbortedError) as error:
        end = exit_report_of(error)
        if end.text:
            print_line(end.text)
        sys.exit(end.exit_code)


def fail_together(action):
    with ended_plainly(), create_communicator() as comm:
        comm.barrier()
        action(comm)


def fail_before_check_failures(action):
    """Fail on one rank while the others call `check_failures`."""
    with ended_plainly(), create_communicator() as comm:
        comm.check_failures()
        if comm.rank == ODD:
            action(comm)
        comm.check_failures()


def interrupted(_action):
    def interrupt_in_call():
        wait_until(lambda: comm.state == "busy")
        os.kill(os.getpid(), signal.SIGINT)

    with create_communicator() as comm:
        if comm.rank == ODD:
            threading.Thread(target=interrupt_in_call, daemon=True).start()
            comm.barrier()
        else:
            time.sleep(FOR_EVER_S)


def request_report(_action):
    """Request the report of a rank that waits in a call until it is complete; then both ranks continue."""
    with create_communicator() as comm:
        pids = np.zeros(comm.size, np.int64)
        comm.allgatherv(np.array([os.getpid()]), pids, [1] * comm.size)
        answer = Path(os.environ["ANSWER"])
        if comm.rank == 0:
            os.dup2(os.open(answer, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), 2)
        else:
            request_report_until_complete(int(pids[0]), answer)
        comm.barrier(label="alone")
    print_line("continued")


def request_report_until_complete(pid, answer):
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and not report_is_complete(answer):
        os.kill(pid, signal.SIGUSR1)
        time.sleep(0.3)


def report_is_complete(answer):
    """Return whether both parts are there: a stack printed before stderr was redirected to the file is lost."""
    report = answer.read_text() if answer.exists() else ""
    return "now in #2" in report and "in request_report" in report


def mpi_error(_action):
    """Make MPI raise an error: receive a message that is longer than its buffer."""
    with create_communicator() as comm:
        try:
            comm.broadcast(np.zeros(10_000 if comm.rank == 0 else 1))
        except CollectiveFailedError as error:
            print_line("MPI said", error.mpi_error_code > 0, error.operation)
            raise
        comm.barrier()


def orderly_exit(_action):
    with create_communicator() as comm:
        comm.barrier()
        sys.exit(0)


def no_close(_action):
    create_communicator().barrier()


def request_too_large_region(_action):
    """Request more memory than there is: every rank raises, and the next call works."""
    with create_communicator() as comm:
        try:
            comm.create_shared_region(1 << 50, np.uint8)
        except AllocationFailedError as error:
            print_line("refused", error.requested_bytes == 1 << 50, "MiB free" in str(error))
        comm.barrier()


def create_and_drop_many(_action):
    """Create and drop many regions and communicators: they are released, so their number has no limit."""
    with create_communicator() as comm:
        before = free_bytes()
        for _ in range(60):
            with comm.create_shared_region(1 << 20, np.uint8) as region:
                region.fence()
            comm.split_local().close()
        comm.barrier()
        held = len(comm._nodes._held), len(comm._windows._alive)
        print_line("lost little", before - free_bytes() < 30 << 20, max(held) <= 1)
    for _ in range(20):
        create_communicator().close()
    print_line("worlds", len(create_communicator()._group.communicators._held) <= 2)


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
        print_line("large", bool(right and recv[-1] == 9 and (recv[:-1] == 7).all()))


def with_an_event_loop(_action):
    """Check that an event loop keeps the descriptor from which it reads signals."""

    async def main():
        received = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, received.set)
        with create_communicator() as comm:
            comm.barrier()
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.wait_for(received.wait(), 30)
        print_line("received")

    asyncio.run(main())


def in_a_thread(_action):
    thread = threading.Thread(target=orderly_exit, args=(None,))
    thread.start()
    thread.join()
    print_line("joined")


def many_sizes(_action):
    """Reduce more sizes than are cached."""
    with create_communicator() as comm:
        right = True
        for count in range(1, 300):
            total = np.zeros(count)
            comm.allreduce(np.full(count, comm.rank + 1.0), total)
            right = right and bool((total == 3.0).all())
        print_line("right", right)


def finalised(_action):
    from mpi4py import MPI

    MPI.Finalize()
    try:
        create_communicator("mpi")
    except InitializationFailedError as error:
        print_line("refused:", error)


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        fail_inside,
        fail_outside,
        fail_together,
        fail_before_check_failures,
        interrupted,
        request_report,
        mpi_error,
        orderly_exit,
        no_close,
        request_too_large_region,
        create_and_drop_many,
        large,
        with_an_event_loop,
        in_a_thread,
        many_sizes,
        finalised,
    )
}

if __name__ == "__main__" and sys.argv[1] == "continue_launcher":
    continue_launcher(int(sys.argv[2]))
elif __name__ == "__main__":
    SCENARIOS[sys.argv[1]](globals()[sys.argv[2]] if len(sys.argv) > 2 else None)
