"""A rank whose function has returned exits as an interpreter does: no pending work or output is lost."""

import atexit
import builtins
import threading
import weakref

import pytest

from cobre.comm import launch

SIZES = [1, 2]  # an interpreter of its own, and forks


def leave_files_open(comm, folder):
    """Open files that are never closed and still referenced at exit: their last lines are in buffers."""
    text = (folder / f"text{comm.rank}").open("w")
    text.write("last words")
    data = (folder / f"data{comm.rank}").open("wb")
    data.write(b"last bytes")
    builtins.kept_open = [text, data]


@pytest.mark.parametrize("size", SIZES)
def test_open_files_are_flushed(tmp_path, size):
    launch.run(leave_files_open, size, args=(tmp_path,))
    for rank in range(size):
        assert (tmp_path / f"text{rank}").read_text() == "last words"
        assert (tmp_path / f"data{rank}").read_bytes() == b"last bytes"


def write_to_preloaded_log(comm):
    import preloaded_log  # in the fork server already

    preloaded_log.LOG.write(f"rank {comm.rank}\n")


def test_files_opened_by_preloaded_modules_are_flushed(tmp_path, monkeypatch):
    log = tmp_path / "log"
    (tmp_path / "preloaded_log.py").write_text(f"LOG = open({str(log)!r}, 'a')\n")
    monkeypatch.syspath_prepend(tmp_path)
    launch.run(write_to_preloaded_log, 2, preload=["preloaded_log"])
    assert sorted(log.read_text().splitlines()) == ["rank 0", "rank 1"]


class Resource:
    """A resource that a finaliser releases."""


def register_handlers(comm, folder):
    atexit.register((folder / f"handler{comm.rank}").touch)
    builtins.kept_resource = Resource()
    weakref.finalize(builtins.kept_resource, (folder / f"finaliser{comm.rank}").touch)


@pytest.mark.parametrize("size", SIZES)
def test_exit_handlers_and_finalisers_run(tmp_path, size):
    launch.run(register_handlers, size, args=(tmp_path,))
    expected = {f"{name}{rank}" for name in ("handler", "finaliser") for rank in range(size)}
    assert {path.name for path in tmp_path.iterdir()} == expected


def leave_a_thread(comm, folder):
    def work():
        threading.main_thread().join(60)  # it ends when the interpreter begins to wait for other threads
        (folder / f"thread{comm.rank}").touch()

    threading.Thread(target=work).start()


@pytest.mark.parametrize("size", SIZES)
def test_non_daemon_threads_are_joined(tmp_path, size):
    launch.run(leave_a_thread, size, args=(tmp_path,))
    assert {path.name for path in tmp_path.iterdir()} == {f"thread{rank}" for rank in range(size)}


def print_without_a_newline(comm):
    print(f"rank {comm.rank} says so", end="")


@pytest.mark.parametrize("size", SIZES)
def test_printed_output_is_not_lost(capfd, size):
    launch.run(print_without_a_newline, size)
    text = capfd.readouterr().out
    assert all(f"rank {rank} says so" in text for rank in range(size))


def fail_in_a_handler(comm):
    @atexit.register
    def fail():
        raise LookupError("in a handler")

    return comm.rank


def test_failing_exit_handler_is_reported_and_keeps_result(capfd):
    assert launch.run(fail_in_a_handler, 2) == [0, 1]
    assert "LookupError: in a handler" in capfd.readouterr().err
