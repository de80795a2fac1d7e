"""The files of a case directory: missing, truncated, moved, unknown."""

import json
import os
import subprocess
import sys

import pytest
from validation_case import findings_after, valid_documents, valid_tables, write_case

from cobre.io.case import load_case, load_case_with_findings, read_case
from cobre.io.case_folder.case_files import MOVED, REQUIRED_JSON, known_files
from cobre.io.findings import Findings, InvalidCaseError, Layer


@pytest.fixture
def folder(tmp_path):
    write_case(tmp_path, valid_documents(), valid_tables())
    return tmp_path


def read(folder):
    problems = Findings()
    return read_case(folder, problems), problems


def only_error(folder):
    case, problems = read(folder)
    assert case is None
    assert len(problems.errors) == 1, [str(problem) for problem in problems.errors]
    return problems.errors[0]


def test_valid_case_has_every_file_except_alternatives(folder):
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    alternatives = {name for name in known_files() if "external" in name or "noise_openings" in name}
    assert known_files() - present == alternatives | set(MOVED) | {
        "scenarios/inflow_annual_component.parquet",
        "system/tailrace_curves.parquet",
        "post_study_stages.json",
    }


def test_sound_case_loads(folder):
    case, problems = read(folder)
    assert not problems.errors
    assert case.name == folder.name
    assert load_case(folder).config == case.config


def test_importing_io_case_does_not_load_pyarrow():
    program = "import sys, cobre.io.case; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", REQUIRED_JSON)
def test_missing_file_is_named(folder, name):
    (folder / name).unlink()
    problem = only_error(folder)
    assert (problem.layer, problem.file) == (Layer.STRUCTURE, name)
    assert "missing" in problem.message


def test_all_missing_files_are_named_at_once(tmp_path):
    _, problems = read(tmp_path)
    assert [problem.file for problem in problems.errors] == list(REQUIRED_JSON)


@pytest.mark.parametrize("name", sorted(valid_documents()))
def test_truncated_json_is_structure_error(folder, name):
    text = (folder / name).read_text()
    (folder / name).write_text(text[: len(text) // 2])
    problem = next(problem for problem in read(folder)[1].errors if problem.file == name)
    assert problem.layer is Layer.STRUCTURE
    assert "line 1" in problem.entity


def test_empty_json_file(folder):
    (folder / "stages.json").write_text("")
    assert only_error(folder).message == "the file is empty"


@pytest.mark.parametrize("name", sorted(valid_tables()))
def test_truncated_table_is_a_problem_of_structure(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    problems = [problem for problem in read(folder)[1].errors if problem.file == name]
    assert [problem.layer for problem in problems] == [Layer.STRUCTURE]
    assert "Parquet" in problems[0].message


def test_empty_table_is_read(folder):
    (folder / "scenarios/load_seasonal_stats.parquet").write_bytes(b"")
    assert only_error(folder).message == "the file is empty"


def test_text_that_is_not_utf8(folder):
    (folder / "penalties.json").write_bytes(b'{"bus": "\xff"}')
    assert "UTF-8" in only_error(folder).message


def test_byte_order_mark_is_allowed(folder):
    path = folder / "penalties.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read(folder)[0] is not None


def test_json_that_is_nested_too_deeply(folder):
    (folder / "penalties.json").write_text("[" * 100_000)
    assert only_error(folder).layer is Layer.STRUCTURE


@pytest.mark.parametrize("number", ["9" * 100_000, "-1e400"])
def test_out_of_range_number_is_one_error_and_hides_no_others(folder, number):
    text = (folder / "system/thermals.json").read_text()
    wrong = text.replace('"cost_per_mwh":', f'"no_field": 1, "ramp": {number}, "cost_per_mwh":', 1)
    (folder / "system/thermals.json").write_text(wrong)
    _, problems = read(folder)
    assert [problem.field for problem in problems.errors] == ["ramp", "no_field"]
    assert problems.errors[0].message == "is too large"


def test_trailing_comma_is_named(folder):
    (folder / "penalties.json").write_text('{"bus": [1, ],}')
    problem = only_error(folder)
    assert (problem.entity, problem.message) == (
        "line 1, column 13",
        "is not valid JSON: a comma before a closing bracket",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_reported(folder):
    (folder / "stages.json").chmod(0)
    assert "cannot be read" in only_error(folder).message


def test_directory_instead_of_file_is_reported(folder):
    (folder / "stages.json").unlink()
    (folder / "stages.json").mkdir()
    problem = only_error(folder)
    assert (problem.message, problem.advice) == ("is a directory, not a file", "replace it by a JSON file")


def test_folder_in_the_place_of_a_table(folder):
    path = folder / "scenarios/load_seasonal_stats.parquet"
    path.unlink()
    path.mkdir()
    problem = only_error(folder)
    assert problem.file == "scenarios/load_seasonal_stats.parquet"
    assert problem.message == "is a directory, not a file"
    assert "replace it by one Parquet file" in problem.advice


def test_pipe_in_the_place_of_a_table_is_not_called_truncated(folder):
    path = folder / "scenarios/load_seasonal_stats.parquet"
    path.unlink()
    os.mkfifo(path)
    problem = only_error(folder)
    assert "is a device, a pipe or a socket, not a file" in problem.message
    assert "truncated" not in str(problem)


@pytest.mark.parametrize("name", sorted(MOVED))
def test_error_for_moved_file_names_new_path(folder, name):
    (folder / name).write_text("{}")
    problem = only_error(folder)
    assert problem.file == name
    assert "constraints/" in problem.advice


def test_unknown_file_is_a_warning(folder):
    (folder / "scenarios/inflow_stats.parquet").write_bytes(b"")
    (folder / "notes.txt").write_text("not ours")
    case, problems = read(folder)
    assert case is not None
    assert "scenarios/inflow_stats.parquet" in {problem.file for problem in problems.warnings}
    assert not any(problem.file == "notes.txt" for problem in problems)


@pytest.mark.parametrize("target", ["no_such_folder", "stages.json"])
def test_path_that_is_no_directory(folder, target):
    case, problems = read(folder / target)
    assert case is None
    assert problems.errors[0].layer is Layer.STRUCTURE


def test_key_given_twice(folder):
    text = (folder / "penalties.json").read_text()
    (folder / "penalties.json").write_text(text.replace('"excess_cost"', '"excess_cost": 7.0, "excess_cost"'))
    problem = only_error(folder)
    assert problem.field == "excess_cost"
    assert "twice" in problem.message


def test_problems_of_all_files_are_collected(folder):
    (folder / "config.json").write_text("{}")
    (folder / "penalties.json").write_text("[1]")
    (folder / "system/lines.json").unlink()
    files = {problem.file for problem in read(folder)[1].errors}
    assert files == {"config.json", "penalties.json", "system/lines.json"}


def test_exception_shows_every_problem(folder):
    (folder / "config.json").write_text("{}")
    (folder / "system/lines.json").unlink()
    with pytest.raises(InvalidCaseError) as raised:
        load_case(folder)
    assert "2 errors" in str(raised.value)
    assert "config.json, training: is missing" in str(raised.value)
    assert len(raised.value.findings) == 2


def test_warnings_come_with_the_case(folder):
    (folder / "old.json").write_text("{}")
    case, problems = load_case_with_findings(folder)
    assert case.system.hydros
    assert any(problem.file == "old.json" for problem in problems.warnings)


def test_error_for_an_old_key_names_its_replacement(tmp_path):
    problems = findings_after(
        tmp_path, lambda documents, tables: documents["stages.json"]["stages"][0].update(num_scenarios=3)
    )
    assert [str(problem) for problem in problems.errors] == [
        "stages.json, stage 0, num_scenarios: is not a field of the format (now `num_openings`)"
    ]


def test_dollar_schema_is_allowed_at_the_root_of_every_file(tmp_path):
    documents = valid_documents()
    for content in documents.values():
        content["$schema"] = "https://example.org/schema.json"
    write_case(tmp_path, documents, valid_tables())
    case, problems = read(tmp_path)
    assert case is not None, [str(problem) for problem in problems]


def test_schema_key_is_refused_inside_objects(folder):
    content = json.loads((folder / "system/buses.json").read_text())
    content["buses"][0]["$schema"] = "x"
    (folder / "system/buses.json").write_text(json.dumps(content))
    assert "not a field" in only_error(folder).message
