"""Shared memory next to other users and crashes: no access for others, no leftovers."""

import os
import secrets
import shutil
import signal
import sys
from pathlib import Path

import pytest
from processes import MARK, finish, marked_processes, start_python, wait_until
from shm_worlds import LAYOUT_AT, NOBODY, SHM, fresh_name, is_joining, joined_ranks, names, segment_of, start_rank

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="acting as another user needs root and setpriv"
)

REGIONS = """for turn in range(100000):
            with comm.create_shared_region(100, np.float64) as region:
                region.fence()"""
LOOK = """with comm.create_shared_region(100, np.float64) as region:
            import os
            print(sorted(name for name in os.listdir("/dev/shm") if name.startswith(os.environ["COBRE_SHM_NAME"])))
            comm.barrier()"""


@pytest.fixture
def name():
    with fresh_name() as chosen:
        yield chosen


@needs_root
@pytest.mark.parametrize("mode", [0o666, 0o600, 0o660])
@pytest.mark.parametrize("rank", [0, 1])
def test_segment_of_another_user_is_refused_by_name(name, mode, rank):
    path = SHM / name
    path.write_bytes(bytes(1 << 20))
    path.chmod(mode)
    os.chown(path, NOBODY, NOBODY)
    code, out, err = finish(start_rank(name, rank))
    assert code == 0, err
    assert "InitializationFailedError" in out and name in out
    assert f"belongs to user {NOBODY}, with mode {mode:04o}" in out and "COBRE_SHM_NAME" in out
    assert not any(path.read_bytes()), "nothing was written into it"


@pytest.mark.parametrize("mode", [0o666, 0o640])
def test_segment_that_others_may_open_is_refused(name, mode):
    (SHM / name).write_bytes(bytes(1 << 20))
    (SHM / name).chmod(mode)
    _, out, _ = finish(start_rank(name, 1))
    assert f"with mode {mode:04o}" in out and "choose another COBRE_SHM_NAME" in out


def test_link_in_the_place_of_a_segment_is_refused(name, tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    (SHM / name).symlink_to(tmp_path / "victim")
    _, out, _ = finish(start_rank(name, 0))
    assert "is not a shared memory object" in out
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_segment_of_another_version_of_cobre_is_refused(name):
    first = start_rank(name, 0)
    wait_until(lambda: joined_ranks(name) == 1, "rank 0 waits")
    with segment_of(name) as segment:
        version = int.from_bytes(os.pread(segment.fileno(), 4, LAYOUT_AT), sys.byteorder)
        os.pwrite(segment.fileno(), (version + 1).to_bytes(4, sys.byteorder), LAYOUT_AT)
    _, out, err = finish(start_rank(name, 1))
    first.kill()
    finish(first)
    assert f"rank 0 (pid {first.pid}) runs another version of cobre" in out, err
    assert f"segment layout {version + 1}, this rank has layout {version}" in out


def test_truncated_segment_is_refused(name):
    first = start_rank(name, 0, RENDEZVOUS="name")
    wait_until(lambda: names(name), "rank 0 waits")
    os.kill(first.pid, signal.SIGSTOP)  # it would touch the truncated part
    os.truncate(SHM / name, 4096)
    _, out, err = finish(start_rank(name, 1))
    first.kill()
    finish(first)
    assert f"{name} is shorter than its header says" in out, err


WITHOUT_DESCRIPTORS = """
import os, resource
import cobre.comm.backends.shm
from cobre.comm import InitializationFailedError, ShmConfig, create_communicator
highest = max(map(int, os.listdir("/proc/self/fd")))  # that of the listing is free again
limit = highest + {rank}
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
try:
    create_communicator(ShmConfig("{name}", {rank}, 2))
except InitializationFailedError as error:
    print(error)
"""


@pytest.mark.parametrize("rank", [0, 1])
def test_process_without_free_descriptors_reports_it(name, rank):
    """Rank 0 cannot create the segment; rank 1 has a descriptor for the connection, but none for the segment."""
    first = start_rank(name, 0) if rank else None
    if first:
        wait_until(lambda: joined_ranks(name) == 1, "rank 0 waits")
    code, out, err = finish(start_python("-c", WITHOUT_DESCRIPTORS.format(name=name, rank=rank)))
    if first:
        first.kill()
        finish(first)
    assert (code, f"segment /{name}: " in out, "Too many open files" in out) == (0, True, True), out + err


def test_regions_have_no_names(name):
    ranks = [start_rank(name, rank, turn=LOOK) for rank in range(2)]
    for rank in ranks:
        _, out, err = finish(rank)
        assert out.splitlines() == ["joined", "[]"], err


@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace of processes needs root")
def test_ranks_in_separate_pid_namespaces_share_regions(name):
    apart = ("unshare", "--pid", "--fork", "--kill-child")
    ranks = [start_rank(name, 0, turn=LOOK), start_rank(name, 1, turn=LOOK, wrapper=apart)]
    for rank in ranks:
        _, out, err = finish(rank)
        assert out.splitlines() == ["joined", "[]"], err
    assert names(name) == []


@pytest.mark.parametrize("victim", [0, 1])
def test_rank_that_dies_while_regions_are_created_leaves_no_files(name, victim):
    ranks = [start_rank(name, rank, turn=REGIONS) for rank in range(2)]
    for rank in ranks:
        assert rank.stdout.readline() == "joined\n"
    ranks[victim].send_signal(signal.SIGKILL)
    _, out, err = finish(ranks[1 - victim])
    assert "PeerLostError" in out and f"rank {victim}" in out, err
    finish(ranks[victim])
    assert names(name) == []


@pytest.mark.parametrize("rendezvous", ["socket", "name"])
def test_death_of_rank_zero_leaves_no_files(name, rendezvous):
    """Rank 0 may also die while it waits for the others: the next rank removes the name, and a new rank 0 can start."""
    first = start_rank(name, 0, RENDEZVOUS=rendezvous)
    wait_until(lambda: is_joining(name), "rank 0 waits")
    first.send_signal(signal.SIGKILL)
    finish(first)
    assert is_joining(name) == (rendezvous == "name"), "a socket goes with its process"
    worker = start_rank(name, 1)
    wait_until(lambda: not is_joining(name), "the name was removed by the rank that found it")
    second = start_rank(name, 0)
    assert finish(worker)[1] == finish(second)[1] == "joined\n"
    assert not is_joining(name)


def test_files_of_killed_worlds_are_removed_by_the_next_start_of_any_world(name):
    first = start_rank(name, 0, RENDEZVOUS="name")
    wait_until(lambda: names(name), "rank 0 waits")
    first.send_signal(signal.SIGKILL)
    finish(first)
    assert names(name) == [name]
    (SHM / f"{name}-mine").write_bytes(bytes(1 << 16))
    (SHM / f"{name}-mine").chmod(0o600)
    assert finish(start_rank(f"cobre-test-{secrets.token_hex(6)}", 0, size=1))[1] == "joined\n"
    assert names(name) == [f"{name}-mine"], "only what a dead world left"


WITH_GRANDCHILDREN = """
import subprocess, sys
from cobre.comm import launch
def work(comm):
    subprocess.Popen(["sleep", "500"])
    print("working", flush=True)
    while True:
        comm.barrier()
launch.run(work, 2)
"""


def test_launcher_and_orphan_reaper_killed_at_once_leave_no_grandchild():
    mark = secrets.token_hex(8)
    launcher = start_python("-c", WITH_GRANDCHILDREN, env=os.environ | {MARK: mark})
    for _ in range(2):
        assert "working" in launcher.stdout.readline()
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    reapers = [int(pid) for pid in children if b"orphan_reaper" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(reapers) == 1 and len(marked_processes(mark)) >= 6
    for pid in (*reapers, launcher.pid):
        os.kill(pid, signal.SIGKILL)
    finish(launcher)
    wait_until(lambda: not marked_processes(mark), "all that was started has gone")
