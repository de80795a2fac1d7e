"""How much work a case has, as far as its config says before it is read."""

import json

import pytest

from cobre.study.config_outline import ConfigOutline

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
    assert ConfigOutline.read(case).pieces_of_work == pieces
    assert ConfigOutline.read(case).is_tree is over_a_tree


def test_overrides_count(tmp_path):
    case = write(tmp_path, SAMPLED)
    assert ConfigOutline.read(case, {"training.selection": TREE["training"]["selection"]}).is_tree
    assert (
        ConfigOutline.read(case, {"training.selection": {"method": "sampled", "forward_passes": 3}}).pieces_of_work == 3
    )


def test_without_a_file_nothing_is_known(tmp_path):
    assert ConfigOutline.read(tmp_path).pieces_of_work is None
    assert not ConfigOutline.read(tmp_path).is_tree
