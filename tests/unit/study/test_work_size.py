"""How much work a case has, as far as its config says before it is read."""

import json

import pytest

from cobre.study.work_size import is_tree, pieces_of_work

SAMPLED = {"training": {"selection": {"method": "sampled", "forward_passes": 7}}}
TREE = {"training": {"selection": {"method": "enumerated"}}}


def write(folder, content):
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("content", "pieces", "over_a_tree"),
    [(SAMPLED, 7, False), (TREE, None, True), ({}, None, False), ("no JSON", None, False), ([], None, False)],
)
def test_what_a_config_says(tmp_path, content, pieces, over_a_tree):
    case = write(tmp_path, content)
    assert pieces_of_work(case) == pieces
    assert is_tree(case) is over_a_tree


def test_overrides_count(tmp_path):
    case = write(tmp_path, SAMPLED)
    assert is_tree(case, {"training.selection": TREE["training"]["selection"]})
    assert pieces_of_work(case, {"training.selection": {"method": "sampled", "forward_passes": 3}}) == 3


def test_without_a_file_nothing_is_known(tmp_path):
    assert pieces_of_work(tmp_path) is None
    assert not is_tree(tmp_path)
