"""Tests of reading untrusted files."""

import os
from pathlib import Path

import pytest

from cobre.io.storage.confined import UntrustedFileError, named_inside, read_untrusted


def test_file_is_read_whole(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert read_untrusted(tmp_path / "a") == b"abc"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_not_read(path):
    with pytest.raises(OSError):
        read_untrusted(Path(path))


def test_pipe_without_a_writer_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UntrustedFileError, match="not a file"):
        read_untrusted(tmp_path / "pipe")


def test_oversized_file_is_rejected(tmp_path):
    (tmp_path / "a").write_bytes(b"abcd")
    with pytest.raises(UntrustedFileError, match="has 4 bytes, and at most 3"):
        read_untrusted(tmp_path / "a", 3)
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(UntrustedFileError, match="at most"):
        read_untrusted(tmp_path / "sparse")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "link/x", "a/../../x", None, 3, "a\0b", "loop/x"])
def test_path_from_a_file_does_not_leave_its_root(tmp_path, name):
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(UntrustedFileError):
        named_inside(root, name, "policy.path")


def test_path_inside_is_taken(tmp_path):
    assert named_inside(tmp_path, "./a/../policy", "policy.path") == tmp_path / "./a/../policy"
