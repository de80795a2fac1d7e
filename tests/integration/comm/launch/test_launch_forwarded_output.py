"""Output of ranks is forwarded line by line, marked with the rank."""

import os
import sys

import pytest

from cobre.comm import launch

LOCAL = {"size": 1, "backend": "local"}


def test_lines_are_prefixed_and_complete(capsys):
    def print_lines(comm):
        for number in range(100):
            print("line", number, "of", comm.rank)
        print("warning", comm.rank, file=sys.stderr)

    launch.run(print_lines, 3)
    out, err = capsys.readouterr()
    for rank in range(3):
        lines = [line for line in out.splitlines() if line.startswith(f"[rank {rank}] ")]
        assert lines == [f"[rank {rank}] line {number} of {rank}" for number in range(100)]
    assert len(out.splitlines()) == 300
    assert sorted(err.splitlines()) == [f"[rank {rank}] warning {rank}" for rank in range(3)]


def test_last_line_without_newline_is_printed(capsys):
    launch.run(lambda comm: print("to be continued", end=""), **LOCAL)
    assert capsys.readouterr().out == "[rank 0] to be continued\n"


def test_output_of_killed_rank_is_not_lost(capsys):
    def print_and_die(comm):
        print("last words", end="")
        os.kill(os.getpid(), 9)

    with pytest.raises(launch.WorkerError):
        launch.run(print_and_die, **LOCAL)
    assert capsys.readouterr().out == "[rank 0] last words\n"


def test_ten_megabyte_line_is_forwarded(capsys):
    launch.run(lambda comm: print("x" * 10_000_000), **LOCAL)
    assert capsys.readouterr().out == f"[rank 0] {'x' * 10_000_000}\n"


def test_bytes_that_are_not_utf8_are_replaced(capsys):
    launch.run(lambda comm: os.write(1, b"\xff\x00\xfe\n"), **LOCAL)
    assert capsys.readouterr().out == "[rank 0] \ufffd\x00\ufffd\n"


def test_any_locale_prints_any_text(capsys):
    launch.run(lambda comm: print("usina hidrelétrica ⚡"), **LOCAL, environment={"LC_ALL": "C", "PYTHONUTF8": "0"})
    assert capsys.readouterr().out == "[rank 0] usina hidrelétrica ⚡\n"


def test_output_of_child_processes_is_prefixed(capfd):
    launch.run(lambda comm: os.system("echo from a child") and None, **LOCAL)
    assert capfd.readouterr().out == "[rank 0] from a child\n"


def test_ranks_do_not_read_stdin():
    assert launch.run(lambda comm: sys.stdin.read(), 2) == ["", ""]


def test_output_can_be_redirected(capsys):
    lines = []
    launch.run(lambda comm: print("hello"), 2, output=lambda *call: lines.append(call))
    assert sorted(lines) == [(0, "stdout", "hello\n"), (1, "stdout", "hello\n")]
    assert capsys.readouterr() == ("", "")


def test_failing_output_stops_run():
    def raise_disk_full(rank, stream, text):
        raise OSError("disk full")

    def print_forever(comm):
        while True:
            print("more")

    with pytest.raises(OSError, match="disk full"):
        launch.run(print_forever, 2, output=raise_disk_full)
