"""Explanations of why a run of the same case would differ now."""

from pathlib import Path

import pytest

from cobre import __version__
from cobre.io.case_folder.case_files import file_digests
from cobre.runs.trained_case import TrainedCase


@pytest.fixture
def case(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "stages.json").write_text("{}")
    return tmp_path


def recorded(folder, files, version=__version__):
    return TrainedCase(folder, files, version)


def test_run_of_a_case_in_memory_has_no_files_to_compare(case):
    found = recorded(None, {}).changes_in_words(case)
    assert found == "the run recorded no files to compare; its case was in memory"


def test_run_without_file_record_is_not_called_in_memory(case):
    assert recorded(case, {}).changes_in_words(case) == "the run recorded no files to compare"


def test_case_in_memory_cannot_be_compared_with_files(case):
    found = recorded(case, file_digests(case)).changes_in_words(None)
    assert found == "the present case is in memory, without files to compare"


def test_directory_without_a_case_is_not_called_the_same(case):
    elsewhere = Path(case, "nowhere")
    assert recorded(case, file_digests(case)).changes_in_words(elsewhere) == f"{elsewhere} has no files of a case"


def test_changed_files_and_other_versions_are_named(case):
    before = file_digests(case)
    assert recorded(case, before, "0.0.1").changes_in_words(case).startswith("the files are the same; the run was made")
    (case / "stages.json").write_text("[]")
    assert recorded(case, before).changes_in_words(case) == "changed file: stages.json"
