"""The stream of events: one JSON object a line, readable at every moment."""

import json
import math
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from cobre.core.file_names import EVENT_FILE
from cobre.core.policy_cost import PolicyCost
from cobre.io.storage.atomic import WriteError
from cobre.runs.events import EventLog, encode, iteration_event, new_event, read_events
from cobre.sddp.iteration_records import IterationRecord, PhaseTimes, RankLoad

RECORD = IterationRecord(
    iteration=2,
    lower_bound=1.0,
    upper_bound=3.0,
    upper_bound_std=2.0,
    forward_passes=4,
    solves=10,
    simplex_iterations=99,
    cuts=8,
    elapsed_s=0.5,
    times=PhaseTimes(0.1, 0.2, 0.3, 0.4, 0.5),
    loads=(RankLoad(1.0, 0.25, 0.2, 0.9), RankLoad(0.8, 0.45, 0.4, 0.7)),
)


def test_event_has_kind_and_time():
    event = new_event("warning", message="x")
    assert event["event"] == "warning"
    assert event["time"] > 1.6e9


def test_payload_may_have_field_named_kind():
    assert new_event("run_failed", kind="ValueError")["kind"] == "ValueError"


def test_gap_refers_to_policy_cost():
    """Without that cost the gap is that to the mean of sampled paths, which bounds nothing under a risk measure."""
    known = replace(RECORD, policy_cost=PolicyCost(1.25, 0.125, paths=8))
    for is_risk_averse in (False, True):
        event = iteration_event(known, is_risk_averse=is_risk_averse)
        assert event["gap"] == event["policy_gap"] == 0.25
    assert iteration_event(RECORD)["gap"] == 2.0
    assert iteration_event(RECORD, is_risk_averse=True)["gap"] is None


def test_iteration_has_all_its_numbers():
    event = iteration_event(RECORD)
    expected = {"iteration": 2, "lower_bound": 1.0, "upper_bound": 3.0, "half_width": 1.96, "gap": 2.0, "solves": 10}
    assert {key: event[key] for key in expected} == expected
    assert event["load"] == [[1.0, 0.25], [0.8, 0.45]]
    assert event["imbalance_s"] == [0.2, 0.4]


def test_nan_and_infinity_are_written_as_null():
    line = encode({"event": "x", "a": math.nan, "b": [math.inf, 1.0, {"c": -math.inf}], "d": (2, math.nan)})
    assert json.loads(line) == {"event": "x", "a": None, "b": [None, 1.0, {"c": None}], "d": [2, None]}


def test_event_is_one_line_for_any_text():
    assert "\n" not in encode(new_event("warning", message="one\ntwo\u2028three"))


def test_floats_round_trip_exactly(tmp_path):
    with_digits = 0.1 + 0.2
    log = EventLog(tmp_path, append=False)
    log.emit(new_event("iteration", lower_bound=with_digits))
    assert read_events(tmp_path)[0]["lower_bound"] == with_digits
    log.close()


def test_events_are_flushed_immediately(tmp_path):
    log = EventLog(tmp_path, append=False)
    for number in range(3):
        log.emit(new_event("phase", name=str(number)))
        assert len(read_events(tmp_path)) == number + 1
    log.close()


@pytest.mark.parametrize(("append", "expected"), [(True, ["old", "new"]), (False, ["new"])])
def test_resumed_run_appends_to_its_events_and_a_new_run_replaces_them(tmp_path, append, expected):
    (tmp_path / EVENT_FILE).write_text('{"event":"old"}\n')
    log = EventLog(tmp_path, append=append)
    log.emit(new_event("new"))
    log.close()
    assert [event["event"] for event in read_events(tmp_path)] == expected


def test_incomplete_line_is_read_later(tmp_path):
    path = tmp_path / EVENT_FILE
    path.write_text('{"event":"a"}\n{"event":"b"')
    assert [event["event"] for event in read_events(tmp_path)] == ["a"]
    with path.open("a") as stream:
        stream.write("}\n")
    assert [event["event"] for event in read_events(tmp_path)] == ["a", "b"]


def test_appending_after_a_partial_line_loses_only_that_line(tmp_path):
    """A killed run may leave it; the next event must not be lost with it."""
    (tmp_path / EVENT_FILE).write_text('{"event":"a"}\n{"event":"ha')
    log = EventLog(tmp_path, append=True)
    log.emit(new_event("b"))
    log.close()
    assert [event["event"] for event in read_events(tmp_path)] == ["a", "b"]


def test_lines_that_are_not_events_are_skipped(tmp_path):
    (tmp_path / EVENT_FILE).write_text('\n[1]\n{"a":1}\nnonsense\n{"event":"a"}\n')
    assert [event["event"] for event in read_events(tmp_path)] == ["a"]


def test_missing_folder_raises_write_error(tmp_path):
    with pytest.raises(WriteError, match="events"):
        EventLog(tmp_path / "missing", append=False)


def test_full_disk_is_reported_with_its_remedy(tmp_path):
    """In a process of its own: the limit cannot be raised again."""
    program = textwrap.dedent(f"""
        import resource, signal
        from pathlib import Path
        from cobre.io.storage.atomic import WriteError
        from cobre.runs.events import EventLog, new_event
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        log = EventLog(Path({str(tmp_path)!r}), append=False)
        try:
            while True:
                log.emit(new_event("warning", message="x" * 1000))
        except WriteError as error:
            print(error, "|", error.remedy, flush=True)
            log.close()
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "events.jsonl: the file would exceed the size limit (raise the limit" in ran.stdout
