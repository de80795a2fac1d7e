"""Lines of events, some of them damaged."""

import pytest

from cobre.io.storage.stored_json import event_of, events_in, whole_lines

WHOLE = b'{"event":"a"}\n'


def test_a_line_that_is_being_written_is_left():
    assert whole_lines(WHOLE + b'{"event":"b"') == WHOLE
    assert whole_lines(b'{"event":"b"') == b""


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'"event"', b'{"event":1}', b'{"kind":"a"}', b'{"event":"\xff"}'])
def test_lines_that_are_no_events_are_skipped(line):
    assert event_of(line) is None
    assert events_in(WHOLE + line + b"\n" + WHOLE) == [{"event": "a"}, {"event": "a"}]
