"""The amount of work of a case, estimated from its config before it is read."""

import json
import shutil

import pytest
from example_study import EXAMPLE

from cobre.comm.backends.local import LocalCommunicator
from cobre.study.requests import CaseRequest, RunRequest, with_iterations
from cobre.study.run import run_study
from cobre.study.unchecked_config import UncheckedConfig, with_config_document

SAMPLED = {"training": {"selection": {"method": "sampled", "forward_passes": 7}}}
TREE = {"training": {"selection": {"method": "enumerated"}}}


def write(folder, content):
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def config_of(case, overrides=None):
    return UncheckedConfig.of(CaseRequest(case, overrides))


@pytest.mark.parametrize(
    ("content", "workers", "over_a_tree"),
    [(SAMPLED, 7, False), (TREE, None, True), ({}, None, False), ("no JSON", None, False), ([], None, False)],
)
def test_config_determines_useful_workers_and_trees(tmp_path, content, workers, over_a_tree):
    config = config_of(write(tmp_path, content))
    assert config.max_useful_workers == workers
    assert config.is_tree is over_a_tree


def test_overrides_are_applied(tmp_path):
    case = write(tmp_path, SAMPLED)
    assert config_of(case, {"training.selection": TREE["training"]["selection"]}).is_tree
    assert config_of(case, {"training.selection": {"method": "sampled", "forward_passes": 3}}).max_useful_workers == 3


def test_missing_config_has_no_content(tmp_path):
    assert config_of(tmp_path).max_useful_workers is None
    assert not config_of(tmp_path).is_tree


def test_deeply_nested_config_has_no_outline(tmp_path):
    assert config_of(write(tmp_path, '{"a": ' * 400 + "1" + "}" * 400), {"training.enabled": False}).content is None


def test_config_is_read_once_at_start(tmp_path):
    """One text for placement, output directory and ranks: config.json is neither read nor parsed again."""
    case = shutil.copytree(EXAMPLE, tmp_path / "case", ignore=shutil.ignore_patterns("output"))
    request = with_config_document(CaseRequest(case, with_iterations({"simulation.enabled": False}, 1)))
    (case / "config.json").write_text("no JSON")
    assert with_config_document(request).config is request.config
    with LocalCommunicator() as comm:
        summary = run_study(comm, RunRequest(request, tmp_path / "out"), lambda _: None)
    assert summary.iterations == 1
