"""`cobre convert` with the real bridges, on real decks."""

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bridges import CACHE, SHARED_DECKS, bridge_environment, repaired_deck, shared_deck
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


@pytest.fixture(scope="module")
def novomodelo(tmp_path_factory):
    return bridge_environment(tmp_path_factory.mktemp("novomodelo"))


def test_an_archive_of_a_newave_deck_becomes_a_case_of_format_0_19(novomodelo, tmp_path):
    archive = SHARED_DECKS / "newave_2025_12.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    done = cobre("convert", "newave", archive, tmp_path / "case", "--json", "--bridge", novomodelo, timeout=LIMIT_S)
    answer = json.loads(done.stdout)
    assert answer["bridge"]["summary"]["stages"] == 109
    assert answer["validation"]["conversion"]["bridge"] == "novomodelo-bridge"
    assert answer["validation"]["conversion"]["source_dir"] == str(archive)
    expected = shared_deck("pmo_2025_12_v19")
    for name in ("stages.json", "system/hydros.json", "system/thermals.json", "constraints/generic_constraints.json"):
        assert json.loads((tmp_path / "case" / name).read_text()) == json.loads((expected / name).read_text()), name
    files = json.loads((tmp_path / "case" / "conversion_manifest.json").read_text())["input_files"]
    assert {Path(entry["path"]).parent for entry in files} == {archive}


@pytest.fixture
def late_deck(tmp_path):
    """The week of December 2025 with a gas plant described for the month after the horizon, as late revisions do."""
    archive = SHARED_DECKS / "decomp_2025_12_w1.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "late")
    path = tmp_path / "late" / "dadgnl.rv0"
    lines = path.read_text(encoding="latin-1").splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if line.startswith("TG   15"))
    block = "  0.0120.0    355.50"
    lines.insert(last + 1, f"TG   15   1   LUIZORMELO 7   {block}{block}{block}\n")
    path.write_text("".join(lines), encoding="latin-1")
    return tmp_path / "late"


@pytest.mark.parametrize("program", ["novomodelo-bridge", "cobre-bridge"])
def test_a_late_revision_is_offered_a_repair_and_converted_with_it(late_deck, tmp_path, program):
    bridge = bridge_environment(tmp_path, program)
    command = ("convert", "decomp", late_deck, tmp_path / "case", "--json", "--no-fcf", "--bridge", bridge)
    refused = cobre(*command, timeout=LIMIT_S)
    assert refused.returncode == 3
    assert "TG stage 7 outside the calendar (1..6)" in refused.stderr
    assert "late-gas-stages: dadgnl.rv0: TG records after the last stage (6): LUIZORMELO stage 7" in refused.stderr
    done = cobre(*command, "--repair", timeout=LIMIT_S)
    answer = json.loads(done.stdout)
    assert [repair["name"] for repair in answer["bridge"]["repairs"]] == ["late-gas-stages"]
    assert [repair["name"] for repair in answer["validation"]["conversion"]["repairs"]] == ["late-gas-stages"]
    post = json.loads((tmp_path / "case" / "post_study_stages.json").read_text())
    thermals = json.loads((tmp_path / "case" / "system" / "thermals.json").read_text())["thermals"]
    (plant,) = [thermal["id"] for thermal in thermals if thermal["name"] == "LUIZORMELO"]
    rows = [row for row in post["thermal_bounds"] if row["thermal_id"] == plant]
    assert len(rows) == len(post["stages"]) == 6
    for row in rows:
        assert (row["min_mw"], row["max_mw"]) == (0.0, pytest.approx(120.0, rel=1e-12))
        assert row["cost_per_mwh"] == pytest.approx(355.5, rel=1e-12)


def test_the_deck_of_may_2024_is_converted_with_its_old_tailrace_curves(novomodelo, tmp_path):
    archive = SHARED_DECKS / "decomp_2024_05_with_results.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    command = ("convert", "decomp", archive, tmp_path / "case", "--json", "--no-fcf", "--bridge", novomodelo)
    refused = cobre(*command, timeout=LIMIT_S)
    assert refused.returncode == 3 and "old-tailrace-file" in refused.stderr
    answer = json.loads(cobre(*command, "--repair", timeout=LIMIT_S).stdout)
    assert answer["bridge"]["summary"]["stages"] == 6
    assert [repair["name"] for repair in answer["bridge"]["repairs"]] == ["old-tailrace-file"]


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
