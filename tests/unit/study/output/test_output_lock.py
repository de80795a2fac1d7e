"""One run at a time in an output directory."""

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from cobre.core.file_names import LOCK_FILE
from cobre.io.storage.atomic import WriteError
from cobre.runs.run_state import is_in_use
from cobre.study.output.output_lock import OutputInUseError, output_lock

HOLD = """
import sys, pathlib
from cobre.study.output.output_lock import output_lock
with output_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Start another process that holds the directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "output"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait(30)
    process.stdin.close()
    process.stdout.close()


def test_lock_creates_directory_and_leaves_no_file(tmp_path):
    folder = tmp_path / "a" / "b"
    assert not is_in_use(folder)
    with output_lock(folder):
        assert is_in_use(folder)
        assert f"pid {os.getpid()} on " in (folder / LOCK_FILE).read_text()
    assert not is_in_use(folder)
    assert list(folder.iterdir()) == []


def test_second_run_raises_with_holder(tmp_path, holder):
    assert is_in_use(tmp_path / "output")
    with pytest.raises(OutputInUseError, match=rf"is used by a running study \(pid {holder.pid} on .*--output"):
        output_lock(tmp_path / "output").__enter__()
    assert f"pid {holder.pid} " in (tmp_path / "output" / LOCK_FILE).read_text(), "its file was left alone"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_lock_is_released_however_the_process_ends(tmp_path, holder, number):
    holder.send_signal(number)
    holder.wait(30)
    assert not is_in_use(tmp_path / "output")
    with output_lock(tmp_path / "output"):
        assert is_in_use(tmp_path / "output")


def test_error_releases_lock(tmp_path):
    with pytest.raises(LookupError), output_lock(tmp_path):
        raise LookupError
    with output_lock(tmp_path):
        pass


def test_second_lock_in_same_process_raises(tmp_path):
    with output_lock(tmp_path), pytest.raises(OutputInUseError):
        output_lock(tmp_path).__enter__()
    assert not is_in_use(tmp_path)


def test_stale_lock_file_is_ignored(tmp_path):
    (tmp_path / LOCK_FILE).write_text("pid 1 on a host with a very long name that was here before, and much more\n")
    assert not is_in_use(tmp_path)
    with output_lock(tmp_path):
        assert (tmp_path / LOCK_FILE).read_text().count("\n") == 1


def test_directory_that_cannot_be_created_raises_write_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WriteError):
        output_lock(tmp_path / "file" / "output").__enter__()


def test_checking_the_lock_does_not_block_a_run(tmp_path, monkeypatch):
    """A process that queries the lock holds the file at the first attempt, and not after the first pause."""
    (tmp_path / LOCK_FILE).touch()
    asking = (tmp_path / LOCK_FILE).open("rb")
    fcntl.flock(asking, fcntl.LOCK_SH)
    monkeypatch.setattr("cobre.study.output.output_lock.time.sleep", lambda _: asking.close())
    with output_lock(tmp_path):
        assert asking.closed
        assert is_in_use(tmp_path)
