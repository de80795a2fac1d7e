"""Splitting a rank's output into prefixed lines."""

import io
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.comm.launch import messages
from cobre.comm.launch.messages import LineBuffer, Stream, forward


@given(st.lists(st.binary(max_size=20)))
def test_nothing_is_lost_and_only_complete_lines_are_returned(chunks):
    buffer = LineBuffer()
    texts = [buffer.feed(chunk) for chunk in chunks]
    texts.append(buffer.finish())
    sent = b"".join(chunks)
    expected = b"".join(line + b"\n" for line in sent.removesuffix(b"\n").split(b"\n")) if sent else b""
    assert "".join(texts) == expected.decode("utf-8", "replace")
    assert all(not text or text.endswith("\n") for text in texts)


def test_character_split_between_chunks_is_kept():
    buffer = LineBuffer()
    data = "água\n".encode()
    assert buffer.feed(data[:1]) + buffer.feed(data[1:]) == "água\n"


def test_bytes_that_are_not_utf8_are_replaced():
    assert LineBuffer().feed(b"\xff\xfe ok\n") == "\ufffd\ufffd ok\n"


def test_line_without_newline_uses_bounded_memory(monkeypatch):
    monkeypatch.setattr(messages, "MAX_LINE_BYTES", 10)
    buffer = LineBuffer()
    assert [buffer.feed(b"123456"), buffer.feed(b"789012"), buffer.finish()] == ["", "123456\n", "789012\n"]


def test_every_line_is_prefixed_with_its_rank(capsys):
    forward(2, "stdout", "one\n\nthree\n")
    forward(3, "stderr", "four\n")
    assert capsys.readouterr() == ("[rank 2] one\n[rank 2] \n[rank 2] three\n", "[rank 3] four\n")


def test_only_a_newline_ends_a_line(capsys):
    forward(0, "stdout", "10 %\r20 %\u2028more\n")
    assert capsys.readouterr().out == "[rank 0] 10 %\r20 %\u2028more\n"


def test_replaced_stdout_is_used(monkeypatch):
    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stdout", notebook)
    forward(0, "stdout", "hello\n")
    assert notebook.getvalue() == "[rank 0] hello\n"


def test_process_without_streams_prints_nothing(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)
    forward(0, "stdout", "hello\n")
    assert capfd.readouterr() == ("", "")


def test_character_outside_of_the_encoding_is_replaced(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    forward(0, "stdout", "água\n")
    assert raw.getvalue() == b"[rank 0] ?gua\n"


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    ends = {"reading": reading, "writing": writing}
    yield ends
    for descriptor in ends.values():
        os.close(descriptor)


def test_stream_that_others_hold_open_can_be_finished(pipe):
    lines = []
    stream = Stream(0, "stdout", pipe["reading"])
    os.write(pipe["writing"], b"whole\npartial")
    stream.finish(lambda *call: lines.append(call))
    assert lines == [(0, "stdout", "whole\n"), (0, "stdout", "partial\n")]
    assert stream.has_ended()


def test_empty_stream_does_not_block(pipe):
    stream = Stream(0, "stdout", pipe["reading"])
    assert not stream.read(lambda *_: pytest.fail("nothing was written"))
    assert not stream.has_ended()


def test_end_of_a_stream_flushes_the_last_line(pipe):
    lines = []
    stream = Stream(1, "stderr", pipe["reading"])
    os.write(pipe["writing"], b"partial")
    os.close(pipe.pop("writing"))
    while not stream.has_ended():
        stream.read(lambda *call: lines.append(call))
    assert lines == [(1, "stderr", "partial\n")]


def test_tail_has_the_last_lines_truncated(pipe):
    stream = Stream(0, "stderr", pipe["reading"])
    for number in range(50):
        os.write(pipe["writing"], f"{number} {'x' * 1000}\n".encode())
        stream.read(messages.discard)
    assert [line.split()[0] for line in stream.tail] == [str(number) for number in range(30, 50)]
    assert max(map(len, stream.tail)) == messages.TAIL_CHARACTERS
