"""`cobre convert` with the real bridges, on real decks."""

import json

import pyarrow.parquet as pq
import pytest
from bridges import CACHE, bridge_environment, repaired_deck, shared_deck
from cli_runs import cobre

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]
LIMIT_S = 900
# What NumPy computes with other instructions on other machines: heights and areas of reservoirs.
COMPUTED = {"height_m", "area_km2"}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    return bridge_environment(tmp_path_factory.mktemp("bridge"), "cobre-bridge")


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """The official deck with the three repairs that cobre-bridge needs."""
    return repaired_deck(tmp_path_factory.mktemp("deck") / "pmo")


@pytest.fixture(scope="module")
def converted(bridge, deck, tmp_path_factory):
    """The case, and how the command ended."""
    case = tmp_path_factory.mktemp("converted") / "case"
    command = ("convert", "newave", deck, case, "--using", "cobre-bridge")
    return case, cobre(*command, timeout=LIMIT_S, XDG_CACHE_HOME=str(CACHE))


def test_the_case_is_the_known_one_file_by_file(converted):
    case, _ = converted
    expected = shared_deck("pmo_2018")
    names = {path.relative_to(expected) for path in expected.rglob("*") if path.is_file()}
    assert {path.relative_to(case) for path in case.rglob("*") if path.is_file()} == names | {_manifest(case)}
    for name in sorted(names):
        if name.suffix == ".json":
            assert json.loads((case / name).read_text()) == json.loads((expected / name).read_text()), name
        else:
            _same_table(case / name, expected / name)


def test_diagnostics_come_through_and_our_validation_follows(converted):
    case, done = converted
    assert "FICT.SERRA M" in done.stderr
    assert "Converted 151 hydros" in done.stdout
    ours = cobre("validate", case, timeout=LIMIT_S)
    assert done.returncode == ours.returncode
    assert ours.stdout.strip() in done.stdout
    assert "conversion_manifest.json" not in ours.stdout
    assert "converted from the NEWAVE deck" in ours.stdout


def test_as_json_with_a_bridge_that_is_named(bridge, deck, tmp_path):
    done = cobre("convert", "newave", deck, tmp_path / "case", "--json", "--bridge", bridge, timeout=LIMIT_S)
    answer = json.loads(done.stdout)
    assert {entry["code"] for entry in answer["bridge"]["diagnostics"]} >= {"fictitious-plants-excluded"}
    assert answer["validation"]["is_valid"] == (done.returncode == 0)
    assert answer["validation"]["conversion"]["bridge_version"] == "0.18.0"


@pytest.mark.parametrize("model", ["newave", "decomp"])
def test_a_folder_that_is_no_deck_is_refused_and_leaves_nothing(bridge, tmp_path, model):
    (tmp_path / "deck").mkdir()
    for options in ([], ["--json"]):
        done = cobre("convert", model, tmp_path / "deck", tmp_path / "case", "--bridge", bridge, *options)
        assert done.returncode == 3
        assert "caso.dat" in done.stderr
        assert "cannot be converted" in done.stderr
        assert not (tmp_path / "case").exists()


def test_a_folder_that_is_not_empty_is_left_alone(bridge, deck, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = cobre("convert", "newave", deck, tmp_path, "--bridge", bridge / "bin" / "cobre-bridge")
    assert done.returncode == 5
    assert "--force" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def _manifest(case):
    return (case / "conversion_manifest.json").relative_to(case)


def _same_table(found, expected):
    found, expected = pq.read_table(found), pq.read_table(expected)
    assert found.schema.equals(expected.schema)
    for name in found.column_names:
        values = found[name].to_pylist()
        if name in COMPUTED:
            assert values == pytest.approx(expected[name].to_pylist(), rel=1e-8)
        else:
            assert values == expected[name].to_pylist()
