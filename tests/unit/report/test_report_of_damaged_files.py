"""Files with values replaced at random give a report or a ReportError, and no other outcome."""

import json
import random

import pytest
from report_page import Page

from cobre.report.document import write_report
from cobre.report.run_folder import ReportError

STRANGE = (None, True, -1, 0, 1e30, "words", "", [], {}, [None], [[1]], {"id": 0})


def corrupt(value, choose):
    """Return the same value, with about one entry in thirty replaced."""
    if choose.random() < 1 / 30:
        return choose.choice(STRANGE)
    if isinstance(value, dict):
        return {key: corrupt(entry, choose) for key, entry in value.items()}
    return [corrupt(entry, choose) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(6))
def test_damaged_values_do_not_break_the_report(run_copy, seed):
    choose = random.Random(seed)
    for name in ("study.json", "summary.json", "simulation/manifest.json", "training/manifest.json"):
        content = json.loads((run_copy / name).read_text())
        (run_copy / name).write_text(json.dumps(corrupt(content, choose)))
    lines = [json.loads(line) for line in (run_copy / "events.jsonl").read_text().splitlines()]
    (run_copy / "events.jsonl").write_text("".join(json.dumps(corrupt(line, choose)) + "\n" for line in lines))
    try:
        Page(write_report(run_copy).read_text())
    except ReportError as error:
        assert str(error)


@pytest.mark.parametrize("name", ["study.json", "summary.json", "simulation/manifest.json", "events.jsonl"])
def test_deeply_nested_json_is_reported(run_copy, name):
    (run_copy / name).write_text('{"a":' * 5000 + "1" + "}" * 5000 + "\n")
    text = Page(write_report(run_copy).read_text()).text
    assert "nested too deeply" in text or "events.jsonl: 1 line cannot be read" in text


@pytest.mark.parametrize("is_loop", [False, True])
def test_events_directory_is_reported(run_copy, is_loop):
    path = run_copy / "events.jsonl"
    path.unlink()
    if is_loop:
        path.symlink_to(path)
    else:
        path.mkdir()
    assert "events.jsonl cannot be read: " in Page(write_report(run_copy).read_text()).text
