"""Settings of a case in memory go by their names in config.json."""

from pathlib import Path

import pytest

import cobre
from cobre.core.stopping import IterationLimit

CASE = Path(__file__).resolve().parents[4] / "examples" / "two_reservoirs"


@pytest.fixture(scope="module")
def case():
    return cobre.load_case(CASE)


def test_setting_has_one_name_in_file_and_case(case):
    settings = {"training.selection.forward_passes": 3, "training.cut_selection.selection": {"method": "level1"}}
    by_name = cobre.changed(case, {f"config.{name}": value for name, value in settings.items()})
    assert by_name.config == cobre.load_case(CASE, settings).config
    assert by_name.config != case.config
    assert by_name.system is case.system


def test_lists_of_the_file_and_records_both_set_the_stopping_rules(case):
    rules = [{"type": "iteration_limit", "limit": 4}]
    by_file = cobre.changed(case, {"config.training.stopping_rules": rules})
    assert by_file == cobre.changed(case, {"config.training.stopping_rules": (IterationLimit(4),)})


def test_empty_change_returns_equal_case(case):
    assert cobre.changed(case, {}) == case


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("config.training.selection.forward_passes", 0, "is 0 (expected at least 1)"),
        ("config.training.selection.forward_pases", 2, "did you mean `forward_passes`?"),
        ("config.trainings", 2, "did you mean `training`?"),
    ],
)
def test_wrong_settings_are_refused_like_those_of_the_file(case, path, value, words):
    with pytest.raises(cobre.InvalidCaseError) as caught:
        cobre.changed(case, {path: value})
    assert words in str(caught.value)


def test_unknown_section_is_a_key_error(case):
    with pytest.raises(KeyError, match="no setting or field 'selections'; there are cut_selection"):
        cobre.changed(case, {"config.training.selections.forward_passes": 2})
