"""Writing all or nothing: `cobre.io.storage.atomic`."""

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cobre.io.storage.atomic import (
    WriteError,
    check_writable,
    new_directory,
    replacing_file,
    write_file,
)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


class Interrupted(BaseException):
    """A BaseException that is not an Exception, like KeyboardInterrupt."""


def test_file_is_complete_or_absent(tmp_path):
    write_file(tmp_path / "policy.bin", b"abc")
    assert (tmp_path / "policy.bin").read_bytes() == b"abc"
    assert names(tmp_path) == ["policy.bin"]


def test_target_keeps_its_content_until_the_block_ends(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with replacing_file(target) as stream:
        stream.write(b"new")
        stream.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, Interrupted])
def test_failing_block_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with pytest.raises(error), replacing_file(target) as stream:
        stream.write(b"half")
        raise error
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_files_have_the_permissions_that_the_umask_says(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_file(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_targets_that_are_no_regular_file_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name, words in (("folder", "a directory"), ("pipe", "a pipe"), ("link", "a device"), ("x" * 300, "too long")):
        with pytest.raises(WriteError, match=words):
            write_file(tmp_path / name, b"something")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_new_directory_appears_whole(tmp_path):
    with new_directory(tmp_path / "deep" / "case") as folder:
        (folder / "system").mkdir()
        (folder / "system" / "buses.json").write_text("{}")
        assert not (tmp_path / "deep" / "case").exists()
    assert (tmp_path / "deep" / "case" / "system" / "buses.json").read_text() == "{}"
    assert names(tmp_path / "deep") == ["case"]


def test_empty_directory_is_replaced(tmp_path):
    (tmp_path / "case").mkdir()
    with new_directory(tmp_path / "case") as folder:
        (folder / "a").write_text("1")
    assert names(tmp_path / "case") == ["a"]


def test_new_directory_must_not_exist(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match="exists and is not empty"), new_directory(tmp_path / "full"):
        pytest.fail("the block must not run")
    with pytest.raises(WriteError, match="exists and is a file"), new_directory(tmp_path / "file"):
        pytest.fail("the block must not run")
    with pytest.raises(WriteError, match="a part of its path is a file"), new_directory(tmp_path / "file" / "case"):
        pytest.fail("the block must not run")
    assert (tmp_path / "full" / "a").read_text() == "mine"


def test_directory_that_is_missing_is_named(tmp_path):
    with pytest.raises(WriteError, match=r"the directory .*/nowhere does not exist \(create it first\)"):
        write_file(tmp_path / "nowhere" / "a", b"1")


@pytest.mark.parametrize("error", [ValueError, Interrupted])
def test_failing_block_leaves_no_directory(tmp_path, error):
    with pytest.raises(error), new_directory(tmp_path / "case") as folder:
        (folder / "a").write_text("half")
        raise error
    assert names(tmp_path) == []


def test_parent_that_is_a_file_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    for act in (lambda p: write_file(p, b""), check_writable):
        with pytest.raises(WriteError, match="a part of its path is a file"):
            act(tmp_path / "file" / "out")


def test_missing_parent_is_explained(tmp_path):
    with pytest.raises(WriteError, match="nowhere does not exist"):
        write_file(tmp_path / "nowhere" / "a", b"")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space is left"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "not writable"),
    ],
)
def test_file_system_errors_become_write_errors_with_a_remedy(tmp_path, number, words):
    with pytest.raises(WriteError, match=words) as caught, replacing_file(tmp_path / "a"):
        raise OSError(number, os.strerror(number))
    assert caught.value.remedy
    assert names(tmp_path) == []


def test_error_about_another_file_is_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError), replacing_file(tmp_path / "a"):
        Path("/no/such/input").read_bytes()
    assert names(tmp_path) == []


def test_write_that_the_system_cuts_short_leaves_no_file(tmp_path):
    # A real failure in the middle of a write, in a process of its own: the limit cannot be raised again.
    program = textwrap.dedent(f"""
        import resource, signal
        from pathlib import Path
        from cobre.io.storage.atomic import WriteError, write_file
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        try:
            write_file(Path({str(tmp_path / "a")!r}), bytes(1_000_000))
        except WriteError as error:
            print(error)
    """)

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "exceed the size limit" in ran.stdout
    assert names(tmp_path) == []


def test_check_writable_makes_the_directory_and_leaves_it_empty(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == []
