"""Messages from ranks to the program that launched them."""

import contextlib
import os
import resource
from pathlib import Path

import pytest

from cobre.comm import launch
from cobre.comm.launch.messages import MESSAGE_VARIABLE, MESSAGES, message_descriptors, send_to_parent, with_messages
from cobre.comm.launch.spawning import RankPipes


class Recorder:
    """Records the calls of `on_message` and `output`."""

    def __init__(self):
        self.lines = []
        self.printed = []

    def message(self, rank, line):
        self.lines.append((rank, line))

    def output(self, rank, stream, text):
        self.printed.append((rank, stream, text))


def test_messages_and_output_are_separated():
    recorder = Recorder()
    take = with_messages(recorder.output, recorder.message)
    take(1, MESSAGES, "one\ntwo\n")
    take(1, "stdout", "printed\n")
    assert recorder.lines == [(1, "one"), (1, "two")]
    assert recorder.printed == [(1, "stdout", "printed\n")]


def test_without_on_message_the_output_is_unchanged():
    recorder = Recorder()
    assert with_messages(recorder.output, None) == recorder.output


@pytest.mark.parametrize("line", ["", "a\rb", "a\x0bb", "a\x85b", "a\u2028b", "  spaces  ", "ü" * 70_000])
def test_only_a_newline_ends_a_message(line):
    recorder = Recorder()
    with_messages(recorder.output, recorder.message)(0, MESSAGES, f"{line}\nnext\n")
    assert recorder.lines == [(0, line), (0, "next")]


def test_on_message_is_not_called_again_after_it_has_raised():
    """Later messages must not hide the first error while the run is being stopped."""
    calls = []

    def refuse(rank, line):
        calls.append(line)
        raise LookupError(line)

    take = with_messages(Recorder().output, refuse)
    with pytest.raises(LookupError, match="one"):
        take(0, MESSAGES, "one\ntwo\n")
    take(0, MESSAGES, "three\n")
    assert calls == ["one"]


def test_message_without_a_parent_is_dropped(monkeypatch):
    monkeypatch.delenv(MESSAGE_VARIABLE, raising=False)
    send_to_parent("into the wind")
    assert message_descriptors() == ()


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def test_message_of_two_lines_raises(monkeypatch, pipe):
    monkeypatch.setenv(MESSAGE_VARIABLE, str(pipe[1]))
    assert message_descriptors() == (pipe[1],)
    with pytest.raises(ValueError, match="a single line"):
        send_to_parent("a\nb")


def test_message_to_dead_parent_is_dropped(monkeypatch, pipe):
    reading, writing = pipe
    monkeypatch.setenv(MESSAGE_VARIABLE, str(writing))
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"too late")
    send_to_parent("too late")


def open_descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_pipes_of_a_rank_close_all_descriptors():
    before = open_descriptors()
    pipes = RankPipes(3, has_messages=True)
    assert list(pipes.writing) == ["stdout", "stderr", MESSAGES]
    assert len(open_descriptors()) == len(before) + 6
    pipes.close_writing_ends()
    assert len(open_descriptors()) == len(before) + 3
    pipes.close()
    assert open_descriptors() == before


def test_pipes_that_cannot_all_be_opened_leave_no_descriptor():
    before = open_descriptors()
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(len(before) + 8) if str(number) not in before]  # the numbers may have gaps
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[3], former[1]))  # room for two pipes, not for the third
    try:
        with pytest.raises(OSError, match="Too many open files"):
            RankPipes(3, has_messages=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, former)
    assert open_descriptors() == before


def send_messages(comm, count):
    for number in range(count):
        launch.send_to_parent(f"{comm.rank}:{number}:" + "x" * (number % 7) * 1000)
    return comm.rank


def test_many_messages_arrive_complete_and_in_the_order_of_each_rank():
    recorder = Recorder()
    assert launch.run(send_messages, 2, args=(300,), on_message=recorder.message) == [0, 1]
    for rank in range(2):
        lines = [line for whose, line in recorder.lines if whose == rank]
        assert lines == [f"{rank}:{number}:" + "x" * (number % 7) * 1000 for number in range(300)]


def send_long_message(comm):
    launch.send_to_parent("y" * 3_000_000)


def test_message_larger_than_a_pipe_arrives_complete():
    recorder = Recorder()
    launch.run(send_long_message, 1, on_message=recorder.message)
    assert [len(line) for _, line in recorder.lines] == [3_000_000]


def test_messages_without_on_message_are_dropped():
    assert launch.run(send_messages, 1, args=(3,)) == [0]


def test_exception_of_on_message_ends_the_run_and_is_raised():
    calls = []

    def refuse(rank, line):
        calls.append(rank)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        launch.run(send_messages, 2, args=(100,), on_message=refuse)
    assert len(calls) == 1
