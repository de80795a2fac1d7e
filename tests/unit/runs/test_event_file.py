"""Lines of events, some of them damaged."""

import pytest

from cobre.runs.events import event_of, events_in, whole_lines

WHOLE = b'{"event":"a"}\n'


def test_incomplete_last_line_is_skipped():
    assert whole_lines(WHOLE + b'{"event":"b"') == WHOLE
    assert whole_lines(b'{"event":"b"') == b""


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'"event"', b'{"event":1}', b'{"kind":"a"}', b'{"event":"\xff"}'])
def test_lines_without_events_are_skipped(line):
    assert event_of(line) is None
    assert events_in(WHOLE + line + b"\n" + WHOLE) == [{"event": "a"}, {"event": "a"}]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400, "1" + "0" * 5000])
def test_event_with_invalid_number_is_ignored(number):
    line = b'{"event":"iteration","lower_bound":%s}' % number.encode()
    assert event_of(line) is None
    assert events_in(line + b'\n{"event":"phase"}\n') == [{"event": "phase"}]
