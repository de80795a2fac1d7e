"""Launcher messages at system limits, with correct advice."""

import os
import re
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

from cobre.comm import InitializationFailedError, launch, variables
from cobre.comm.launch import WorkerError

FEW_RANKS = "likely out of memory. Try fewer ranks."


def in_new_process(program):
    """Return the output of a program: limits that it lowers for itself could not be raised again here."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def error_under_limits(limits, function="comm.rank", backend="shm"):
    """Return the printed values of a launch under some limits, or its error."""
    return in_new_process(f"""
        import resource, sys
        from cobre.comm import launch

        def work(comm):
            return {function}

        {limits}
        try:
            print(launch.run(work, 2, {backend!r}))
        except Exception as error:
            print(error)
    """)


def file_size(nbytes):
    return f"resource.setrlimit(resource.RLIMIT_FSIZE, ({nbytes}, resource.RLIM_INFINITY))"


def test_file_size_limit_below_segment_is_reported():
    text = error_under_limits(file_size(1 << 20))
    assert "shared memory, more than the limit of 1.0 MiB on the size of a file allows: raise it (ulimit -f)" in text
    assert "docker" not in text and "/dev/shm" not in text.rpartition("SharedMemoryExhaustedError")[2]


def test_file_size_limit_below_payload_is_reported():
    text = error_under_limits(file_size(100))
    assert (
        "could not start 2 ranks: [Errno 27] File too large; raise the limit on the size of files (ulimit -f)" in text
    )
    assert "ulimit -n" not in text


@pytest.mark.parametrize("size", [1 << 21, 9 << 20], ids=["in the buffer's last part", "long before the end"])
def test_file_size_limit_below_result_is_reported(size):
    """Results of ranks pass through a file in memory."""
    text = error_under_limits(file_size(1 << 20), f"bytes({size})", "tcp")
    assert "cannot store the return value (a bytes): File too large; raise the limit on the size of files" in text
    assert "pickle the return value" not in text


def test_cpu_time_limit_is_reported():
    def compute(comm):
        used = sum(os.times()[:2])
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1, hard))
        while comm.rank == 1:
            sum(range(1000))
        comm.barrier()

    with pytest.raises(WorkerError, match=r"was killed by SIGXCPU \(signal 24\): .* Raise the limit \(ulimit -t\)\."):
        launch.run(compute, 2)


def test_kill_under_hard_cpu_limit_mentions_limit():
    text = in_new_process("""
        import resource
        from cobre.comm.launch.payload import ending_of

        print(ending_of(-9))
        resource.setrlimit(resource.RLIMIT_CPU, (1000, 1000))
        print(ending_of(-9))
    """)
    without, with_limit = text.splitlines()
    if resource.getrlimit(resource.RLIMIT_CPU)[1] == resource.RLIM_INFINITY:
        assert without == f"was killed by SIGKILL (signal 9): {FEW_RANKS}"
    assert "or 1000 s of CPU time used, the hard limit (ulimit -H -t)." in with_limit


def test_sigxfsz_death_is_explained(tmp_path):
    def write(comm, path):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        path.write_bytes(bytes(100))

    with pytest.raises(WorkerError, match=r"was killed by SIGXFSZ .* Raise the limit \(ulimit -f\)\."):
        launch.run(write, 1, "tcp", (tmp_path / "file",))


@pytest.mark.parametrize(
    ("mode", "words"), [(0o600, "Permission denied"), (0o700, "Exec format error"), (None, "No such file or directory")]
)
def test_unusable_interpreter_is_reported(tmp_path, mode, words):
    path = tmp_path / "python"
    if mode is not None:
        path.write_bytes(b"\0")
        path.chmod(mode)
    text = error_under_limits(f"sys.executable = {str(path)!r}")
    assert f"] {words}: '{path}'; ranks are processes of this interpreter, which cannot be run here" in text
    assert "could not start 2 ranks" in text and "ulimit" not in text and "fewer" not in text


@pytest.mark.parametrize("value", ["None", "''"])
def test_interpreter_without_path_is_reported(value):
    assert "sys.executable is empty" in error_under_limits(f"sys.executable = {value}")


def test_killed_fork_server_is_the_cause():
    """The kernel does this when memory runs out: the fork server may be the largest process."""

    def kill_parent(comm):
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getppid(), signal.SIGKILL)
        while True:
            comm.barrier()

    with pytest.raises(WorkerError, match=r"was killed because the fork server") as caught:
        launch.run(kill_parent, 2)
    assert f"was killed by SIGKILL (signal 9): {FEW_RANKS}" in str(caught.value)


KILLED_AT_FORK = "import os, signal; os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGKILL))"


def test_fork_server_killed_while_starting_ranks_is_reported(tmp_path, monkeypatch):
    (tmp_path / "killed_at_fork.py").write_text(KILLED_AT_FORK)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InitializationFailedError) as caught:
        launch.run(lambda comm: comm.rank, 2, preload=["killed_at_fork"])
    text = str(caught.value)
    assert re.search(r"could not start 2 ranks: the fork server of the ranks \(pid \d+\) was killed by SIGKILL", text)
    assert text.endswith(FEW_RANKS) and "try again" not in text


class StopsRank1:
    """An argument that stops rank 1 while it is unpickled there, before it can join."""

    def __reduce__(self):
        return stop_rank_1, ()


def stop_rank_1():
    if any(os.environ.get(name) == "1" for name in variables.RANKS):
        os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_error_names_rank_stopped_before_joining(backend):
    limit = {f"COBRE_{backend.upper()}_CONNECT_TIMEOUT_SECS": "1"}
    with pytest.raises(WorkerError) as caught:
        launch.run(lambda comm, _: comm.barrier(), 3, backend, (StopsRank1(),), environment=limit)
    text = str(caught.value)
    assert caught.value.rank == 1
    assert re.match(
        r"Run stopped: rank 1 \(.*\) was stopped, by SIGSTOP or a debugger, and did not join the other", text
    )
    assert "missing rank 1" in text and "2 other ranks were healthy and have exited." in text
    assert "Traceback" not in text and "Also, " not in text


def test_rank_failing_before_joining_is_the_cause():
    """The other ranks also report it missing, but its own error is more specific."""
    limit = {"COBRE_TCP_CONNECT_TIMEOUT_SECS": "1"}

    class Fails:
        def __reduce__(self):
            return fail_on_rank_1, ()

    with pytest.raises(WorkerError, match=r"Run stopped: rank 1 .* raised LookupError: no inflows") as caught:
        launch.run(lambda comm, _: comm.barrier(), 3, "tcp", (Fails(),), environment=limit)
    assert caught.value.rank == 1


def fail_on_rank_1():
    if any(os.environ.get(name) == "1" for name in variables.RANKS):
        raise LookupError("no inflows")
