"""conversion_manifest.json, which cobre-bridge writes next to a case."""

import json

import pytest

from cobre.io.case_folder.case_files import CONVERSION_MANIFEST, conversion_in_words, read_conversion

WRITTEN = {
    "command": "convert decomp",
    "source_dir": "decks/2024-01",
    "output_dir": "case",
    "bridge_version": "0.18.0",
    "git_sha": None,
    "timestamp": "2026-11-16T14:33:58.609129+00:00",
    "entity_counts": {"hydros": 151},
    "input_files": [{"field": "adterm"}, {"field": "agrint"}],
    "diagnostics_summary": {"info": 3, "warning": 1},
    "diagnostics": [],
}


def test_conversion_record_and_summary_are_read(tmp_path):
    (tmp_path / CONVERSION_MANIFEST).write_text(json.dumps(WRITTEN))
    facts = read_conversion(tmp_path)
    assert facts["input_files"] == 2
    assert facts["entity_counts"] == {"hydros": 151}
    said = "converted from the DECOMP deck decks/2024-01 by cobre-bridge 0.18.0 on 2026-11-16 (3 info, 1 warning)"
    assert conversion_in_words(facts) == said


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 10_000])
def test_manifest_of_another_kind_is_ignored(tmp_path, content):
    (tmp_path / CONVERSION_MANIFEST).write_text(content)
    assert read_conversion(tmp_path) is None


def test_missing_manifest_is_none(tmp_path):
    assert read_conversion(tmp_path) is None


def test_incomplete_manifest_is_summarised():
    assert conversion_in_words({}) == "converted from a deck ?"
