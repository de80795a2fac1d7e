"""The compose file, run in network namespaces: the same digest as one process, and one failure ends all."""

import json
import shutil

import pytest
from compose_world import ComposeWorld, write_secret
from manifests import TWO_RESERVOIRS, cobre
from network_hosts import NOT_PERMITTED, Network, is_permitted

RANKS = 3
pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(not is_permitted(), reason=NOT_PERMITTED)]


@pytest.fixture
def folder(tmp_path):
    """Make a user's folder: compose.yaml, case, output and secret."""
    shutil.copytree(TWO_RESERVOIRS, tmp_path / "case")
    (tmp_path / "output").mkdir()
    write_secret(tmp_path / "cobre-secret")
    (tmp_path / "compose.yaml").write_text(cobre("launch", "compose", "--ranks", RANKS, "--", "--iterations", 3))
    return tmp_path


@pytest.fixture
def network():
    with Network(others=RANKS - 1, families=(4,)) as made:
        yield made


def test_compose_run_has_digest_of_one_process(folder, network):
    world = ComposeWorld(folder / "compose.yaml", network)
    outcomes = world.run(order=["rank2", "rank0", "rank1"])
    assert {name: code for name, (code, *_) in outcomes.items()} == dict.fromkeys(world.services, 0), outcomes
    cobre("run", folder / "case", "--output", folder / "alone", "--iterations", 3, "--threads", 1)
    summary = json.loads((folder / "output" / "summary.json").read_text())
    assert summary["digest"] == json.loads((folder / "alone" / "summary.json").read_text())["digest"]
    assert [path.name for path in (folder / "output").rglob("summary.json")] == ["summary.json"]
    assert summary["digest"] in outcomes["rank0"][1]
    assert summary["digest"] not in outcomes["rank1"][1], "only rank 0 prints"


def test_wrong_secret_ends_all_ranks_with_an_error(folder, network):
    """Ranks 0 and 2 share one, rank 1 has another: no rank trains."""
    text = (folder / "compose.yaml").read_text()
    text = text.replace('COBRE_TCP_SIZE: "3"', 'COBRE_TCP_SIZE: "3"\n  COBRE_TCP_CONNECT_TIMEOUT_SECS: "5"')
    text = text.replace('COBRE_TCP_RANK: "1"}', 'COBRE_TCP_RANK: "1", COBRE_TCP_SECRET_FILE: ./other}')
    (folder / "compose.yaml").write_text(text)
    other = folder / "other"
    write_secret(other)
    (folder / "compose.yaml").write_text(text.replace("./other", str(other)))
    outcomes = ComposeWorld(folder / "compose.yaml", network).run()
    assert all(code != 0 for code, *_ in outcomes.values()), outcomes
    assert "differs from the coordinator's" in outcomes["rank1"][2]
    assert "missing rank 1" in outcomes["rank0"][2]
    assert "Traceback" not in "".join(err for _, _, err in outcomes.values())
