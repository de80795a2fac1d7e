"""The state of a run: by its log, its summary and its lock."""

import pytest

from cobre.core.file_names import SUMMARY_FILE
from cobre.runs.run_state import LastActivity, RunState, state_of
from cobre.study.output.output_lock import output_lock

HERE = LastActivity(None, 0.0)


@pytest.mark.parametrize(
    ("log", "state"),
    [
        ({"has_failed": True}, RunState.FAILED),
        ({"has_failed": True, "has_finished": True}, RunState.FAILED),
        ({"has_failed": False, "has_finished": True}, RunState.FINISHED),
        ({"has_failed": False, "has_finished": True, "is_interrupted": True}, RunState.STOPPED),
        ({"has_failed": False}, RunState.KILLED),
    ],
)
def test_state_follows_events(tmp_path, log, state):
    assert state_of(tmp_path, HERE, **log) is state


@pytest.mark.parametrize(
    ("summary", "state"),
    [
        ("{}", RunState.FINISHED),
        ('{"is_interrupted": false}', RunState.FINISHED),
        ('{"is_interrupted": true}', RunState.STOPPED),
        ("damaged", RunState.FINISHED),
    ],
)
def test_summary_proves_the_end_of_a_run_whose_log_is_lost(tmp_path, summary, state):
    (tmp_path / SUMMARY_FILE).write_text(summary)
    assert state_of(tmp_path, HERE, has_failed=False) is state


def test_run_that_holds_its_lock_is_running(tmp_path):
    with output_lock(tmp_path):
        assert state_of(tmp_path, HERE, has_failed=False) is RunState.RUNNING
    assert state_of(tmp_path, HERE, has_failed=False) is RunState.KILLED


def test_states_have_labels():
    assert [state.words for state in RunState] == ["running", "finished", "stopped", "failed", "ended unexpectedly"]
