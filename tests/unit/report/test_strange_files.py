"""Files in which values were replaced at random: a report comes out, or a ReportError, and never anything else."""

import json
import random

import pytest
from report_page import Page

from cobre.report import ReportError, write_report

STRANGE = (None, True, -1, 0, 1e30, "words", "", [], {}, [None], [[1]], {"id": 0})


def spoiled(value, choose):
    """The same, with about one value in thirty replaced."""
    if choose.random() < 1 / 30:
        return choose.choice(STRANGE)
    if isinstance(value, dict):
        return {key: spoiled(entry, choose) for key, entry in value.items()}
    return [spoiled(entry, choose) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(6))
def test_strange_values(run_copy, seed):
    choose = random.Random(seed)
    for name in ("study.json", "summary.json", "simulation/manifest.json", "training/manifest.json"):
        content = json.loads((run_copy / name).read_text())
        (run_copy / name).write_text(json.dumps(spoiled(content, choose)))
    lines = [json.loads(line) for line in (run_copy / "events.jsonl").read_text().splitlines()]
    (run_copy / "events.jsonl").write_text("".join(json.dumps(spoiled(line, choose)) + "\n" for line in lines))
    try:
        Page(write_report(run_copy).read_text())
    except ReportError as error:
        assert str(error)
