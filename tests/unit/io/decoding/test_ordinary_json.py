"""The native scan accepts only documents in which the Python checks find no error."""

import json

import pytest

from cobre._native import is_ordinary_json
from cobre.io.decoding.json_documents import MIN_SCANNED_CHARACTERS, read_document
from cobre.io.decoding.json_records import SUSPICIOUS
from cobre.io.findings import Findings


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"id": 123456789, "value": -1.25e-7, "name": "a \\"b\\" 1234567890 Infinity"}',
        '{"start_date" :\n "2024-01-31", "items": [{"id": 1}, {"id": 2}], "none": null, "yes": true}',
    ],
)
def test_native_scan_accepts_ordinary_texts(text):
    assert is_ordinary_json(text)
    json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1234567890}',
        '{"value": 1e3}',
        '{"value": 1E+3}',
        '{"value": -Infinity}',
        '{"name": "\\u0041"}',
        '{"start_date": "31.01.2024"}',
        '{"start_date": 3}',
        '{"id": 1, "id": 2}',
        '{"a": {"id": 1}, "b": 2, "a": 3}',
        "[" * 100 + "]" * 100,
        '{"a\\"": 1}',
        "{" + ", ".join(f'"key_{number % 20}": 1' for number in range(21)) + "}",
        '{"unfinished',
    ],
)
def test_other_documents_fall_back_to_python_checks(text):
    assert not is_ordinary_json(text)


@pytest.mark.parametrize("text", ['{"id": 1234567890}', '{"value": 1e3}', '{"v": Infinity}', '{"a_date": "x"}'])
def test_native_scan_never_accepts_suspicious_text(text):
    assert SUSPICIOUS.search(text)
    assert not is_ordinary_json(text)


def test_long_documents_report_duplicate_keys_and_keep_their_content(tmp_path):
    rows = [{"id": number, "name": "x" * 40} for number in range(MIN_SCANNED_CHARACTERS // 40)]
    (tmp_path / "plain.json").write_text(json.dumps({"rows": rows}))
    (tmp_path / "twice.json").write_text('{"rows": 1, "rows": ' + json.dumps(rows) + "}")
    problems = Findings()
    plain = read_document(tmp_path, "plain.json", problems)
    assert plain.is_ordinary and plain.content == {"rows": rows} and not problems.errors
    assert not read_document(tmp_path, "twice.json", problems).is_ordinary
    assert len(problems.errors) == 1
