"""`cobre convert` with the real bridges, on real decks."""

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bridges import CACHE, bridge_environment, shared_deck
from cli_runs import cobre
from decomp_revisions import add_week, move, revise, with_openings
from newave_months import advance
from published_data import DECKS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]
LIMIT_S = 900
# Reservoir heights and areas, which NumPy computes with different instructions on different machines.
COMPUTED = {"height_m", "area_km2"}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    return bridge_environment(tmp_path_factory.mktemp("bridge"), "cobre-bridge")


@pytest.fixture(scope="module")
def deck():
    """Return the official deck, which needs three repairs."""
    return shared_deck("newave_pmo_2018")


@pytest.fixture(scope="module")
def converted(bridge, deck, tmp_path_factory):
    """Convert the deck; return the case folder and the finished process."""
    case = tmp_path_factory.mktemp("converted") / "case"
    command = ("convert", "newave", deck, case, "--using", "cobre-bridge", "--repair")
    return case, cobre(*command, timeout=LIMIT_S, XDG_CACHE_HOME=str(CACHE))


def test_converted_case_equals_recorded_files(converted):
    case, _ = converted
    expected = shared_deck("pmo_2018")
    names = {path.relative_to(expected) for path in expected.rglob("*") if path.is_file()}
    assert {path.relative_to(case) for path in case.rglob("*") if path.is_file()} == names | {_manifest(case)}
    for name in sorted(names):
        if name.suffix == ".json":
            assert json.loads((case / name).read_text()) == json.loads((expected / name).read_text()), name
        else:
            _same_table(case / name, expected / name)


def test_bridge_diagnostics_are_forwarded_and_case_is_validated(converted):
    case, done = converted
    assert "FICT.SERRA M" in done.stderr
    assert "Converted 151 hydros" in done.stdout
    ours = cobre("validate", case, timeout=LIMIT_S)
    assert done.returncode == ours.returncode
    assert ours.stdout.strip() in done.stdout
    assert "conversion_manifest.json" not in ours.stdout
    assert "converted from the NEWAVE deck" in ours.stdout


def test_json_output_with_named_bridge(bridge, deck, tmp_path):
    done = cobre(
        "convert", "newave", deck, tmp_path / "case", "--json", "--bridge", bridge, "--repair", timeout=LIMIT_S
    )
    answer = json.loads(done.stdout)
    assert {entry["code"] for entry in answer["bridge"]["diagnostics"]} >= {"fictitious-plants-excluded"}
    assert answer["validation"]["is_valid"] == (done.returncode == 0)
    assert answer["validation"]["conversion"]["bridge_version"] == "0.18.0"


@pytest.mark.parametrize("model", ["newave", "decomp"])
def test_folder_without_deck_fails_and_writes_nothing(bridge, tmp_path, model):
    (tmp_path / "deck").mkdir()
    for options in ([], ["--json"]):
        done = cobre("convert", model, tmp_path / "deck", tmp_path / "case", "--bridge", bridge, *options)
        assert done.returncode == 3
        assert "holds no caso.dat" in done.stderr
        assert not (tmp_path / "case").exists()


def test_non_empty_output_folder_is_untouched(bridge, deck, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = cobre("convert", "newave", deck, tmp_path, "--bridge", bridge / "bin" / "cobre-bridge")
    assert done.returncode == 5
    assert "--force" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.fixture(scope="module")
def novomodelo(tmp_path_factory):
    return bridge_environment(tmp_path_factory.mktemp("novomodelo"))


def test_archive_of_a_newave_deck_becomes_a_case_of_format_0_19(novomodelo, tmp_path):
    archive = DECKS / "newave_2025_12.zip"
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
    """Return the deck of December 2025 with a gas plant described for the month after the horizon."""
    archive = DECKS / "decomp_2025_12_w1.zip"
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
def test_late_revision_is_offered_a_repair_and_converted_with_it(late_deck, tmp_path, program):
    bridge = bridge_environment(tmp_path, program)
    command = ("convert", "decomp", late_deck, tmp_path / "case", "--json", "--no-fcf", "--bridge", bridge)
    refused = cobre(*command, timeout=LIMIT_S)
    assert refused.returncode == 3
    assert "TG stage 7 outside the calendar (1..6)" in refused.stderr
    assert "late-gas-stages: dadgnl.rv0: TG records after the last stage (6): LUIZORMELO stage 7" in refused.stderr
    done = cobre(*command, "--repair", timeout=LIMIT_S)
    answer = json.loads(done.stdout)
    made = ["late-gas-stages"] + (["frequency-limits"] if program == "cobre-bridge" else [])
    assert [repair["name"] for repair in answer["bridge"]["repairs"]] == made
    assert [repair["name"] for repair in answer["validation"]["conversion"]["repairs"]] == made
    post = json.loads((tmp_path / "case" / "post_study_stages.json").read_text())
    thermals = json.loads((tmp_path / "case" / "system" / "thermals.json").read_text())["thermals"]
    (plant,) = [thermal["id"] for thermal in thermals if thermal["name"] == "LUIZORMELO"]
    rows = [row for row in post["thermal_bounds"] if row["thermal_id"] == plant]
    assert len(rows) == len(post["stages"]) == 6
    for row in rows:
        assert (row["min_mw"], row["max_mw"]) == (0.0, pytest.approx(120.0, rel=1e-12))
        assert row["cost_per_mwh"] == pytest.approx(355.5, rel=1e-12)


@pytest.fixture(scope="module")
def first_week(tmp_path_factory):
    """Return a folder with the deck of the first week of December 2025."""
    archive = DECKS / "decomp_2025_12_w1.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    folder = tmp_path_factory.mktemp("week")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    return folder


@pytest.mark.parametrize("weeks", [1, 3])
def test_revision_is_converted_with_the_orders_of_its_last_stage(novomodelo, first_week, tmp_path, weeks):
    deck, case = revise(first_week, tmp_path / "deck", weeks), tmp_path / "case"
    command = ("convert", "decomp", deck, case, "--json", "--no-fcf", "--bridge", novomodelo)
    refused = json.loads(cobre(*command, timeout=LIMIT_S).stdout)
    assert not refused["validation"]["is_valid"]
    assert [repair["name"] for repair in refused["bridge"]["offered_repairs"]] == ["last-stage-orders"]
    done = cobre(*command, "--repair", "--force", timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout
    stages = json.loads((case / "stages.json").read_text())["stages"]
    assert len(stages) == 6 - weeks
    assert stages[0]["start_date"] == ("2025-12-06" if weeks == 1 else "2025-12-20")
    # Hours of the blocks, from the deck's DP records of the remaining weeks.
    hours = [[40.0, 59.0, 69.0]] * 3 + [[32.0, 57.0, 79.0]] * 2 + [[160.0, 243.0, 293.0]]
    assert [[block["hours"] for block in stage["blocks"]] for stage in stages] == hours[weeks:]
    thermals = json.loads((case / "system" / "thermals.json").read_text())["thermals"]
    names = {plant["id"]: plant["name"] for plant in thermals}
    windows = json.loads((case / "initial_conditions.json").read_text())["past_anticipated_commitments"]
    january = {names[one["thermal_id"]]: one["value_mw"] for one in windows if one["start_date"] == "2026-01-03"}
    assert january == {"SANTA CRUZ": 500.0, "LUIZORMELO": 0.0, "PSERGIPE I": 1593.0}


# Other months, from the first week of December 2025: first day, days of the stages, openings of the last one.
OTHER_MONTHS = {
    "february-2025-of-four-weeks": (
        lambda deck, scratch: move(revise(deck, scratch / "1", 1), scratch / "2", -44),
        ("2025-02-01", [7, 7, 7, 7, 31], 136),
    ),
    "august-2025-of-six-weeks": (
        lambda deck, scratch: move(add_week(deck, scratch / "1"), scratch / "2", -17),
        ("2025-07-26", [7, 7, 7, 7, 7, 7, 25], 136),
    ),
    "last-revision-of-august-2025": (
        lambda deck, scratch: revise(move(add_week(deck, scratch / "1"), scratch / "2", -17), scratch / "3", 4),
        ("2025-08-23", [7, 7, 25], 136),
    ),
    "march-2026": (lambda deck, scratch: move(deck, scratch / "1", 13), ("2026-02-28", [7, 7, 7, 7, 7, 27], 136)),
    "one-opening": (lambda deck, scratch: with_openings(deck, scratch / "1", 1), ("2025-11-29", [7] * 5 + [29], 1)),
    "37-openings": (lambda deck, scratch: with_openings(deck, scratch / "1", 37), ("2025-11-29", [7] * 5 + [29], 37)),
}


@pytest.mark.parametrize("name", OTHER_MONTHS)
def test_decks_of_other_months_are_converted_and_valid(novomodelo, first_week, tmp_path, name):
    make, (begin, days, openings) = OTHER_MONTHS[name]
    deck, case = make(first_week, tmp_path / "scratch"), tmp_path / "case"
    done = cobre("convert", "decomp", deck, case, "--no-fcf", "--bridge", novomodelo, "--repair", timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = json.loads((case / "stages.json").read_text())["stages"]
    assert stages[0]["start_date"] == begin
    assert [sum(block["hours"] for block in stage["blocks"]) / 24 for stage in stages] == days
    inflows = pq.read_table(case / "scenarios" / "external_inflow_scenarios.parquet")
    assert len(set(inflows["scenario_id"].to_pylist())) == openings


def test_revision_of_one_week_that_ends_its_month_is_converted_by_the_other_bridge(novomodelo, bridge, tmp_path):
    archive = DECKS / "decomp_2024_05_with_results.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "first")
    deck, case = revise(tmp_path / "first", tmp_path / "deck", 4), tmp_path / "case"
    command = ("convert", "decomp", deck, case, "--no-fcf", "--repair")
    refused = cobre(*command, "--bridge", novomodelo, timeout=LIMIT_S)
    assert refused.returncode == 3
    assert "cobre-bridge converts it: add --using cobre-bridge" in refused.stderr
    assert cobre(*command, "--bridge", bridge, timeout=LIMIT_S).returncode == 0
    assert len(json.loads((case / "stages.json").read_text())["stages"]) == 2


@pytest.mark.parametrize(("months", "stages"), [(1, 120), (5, 116)], ids=["january", "may"])
def test_newave_decks_of_other_months_are_converted_and_valid(novomodelo, tmp_path, months, stages):
    archive = DECKS / "newave_2025_12.zip"
    if not archive.exists():
        pytest.skip(f"there is no deck {archive}")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "december")
    deck, case = advance(tmp_path / "december", tmp_path / "deck", months), tmp_path / "case"
    done = cobre("convert", "newave", deck, case, "--bridge", novomodelo, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((case / "stages.json").read_text())["stages"]
    assert (len(content), content[0]["start_date"]) == (stages, f"2026-{months:02d}-01")


def test_published_2018_deck_converts_without_repairs(novomodelo, tmp_path):
    command = ("convert", "newave", shared_deck("newave_pmo_2018"), tmp_path / "case", "--json", "--bridge", novomodelo)
    refused = cobre(*command, timeout=LIMIT_S)
    assert refused.returncode == 3
    assert "sources-without-block" in refused.stderr and "FICT.STA BRA" in refused.stderr
    done = cobre(*command, "--repair", timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout
    names = [repair["name"] for repair in json.loads(done.stdout)["validation"]["conversion"]["repairs"]]
    assert names == ["sources-without-block", "expansion-of-fictitious-plants", "no-individual-period"]


def test_may_2024_deck_converts_with_old_tailrace_file(novomodelo, tmp_path):
    archive = DECKS / "decomp_2024_05_with_results.zip"
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
