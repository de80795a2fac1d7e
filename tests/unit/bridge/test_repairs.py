"""Repairs of DECOMP decks: detection, edits and resulting cases."""

import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cobre.bridge.environment import BRIDGE_0_18
from cobre.bridge.gas_repairs import begins_with_last_week
from cobre.bridge.repairs import find_repairs, in_words

GROUP_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("hydro_id", "hydro_unit_group_id", "stage_id", "block_id"), pa.int32()),
        **dict.fromkeys(("min_generation_mw", "max_generation_mw", "max_turbined_m3s"), pa.float64()),
    }
)
# Two weeks and a month; blocks of unequal hours.
DADGER = """\
DT  13   12   2025
DP   1    1   3       50192.0      40.0   50073.0      59.0   40989.0      69.0
DP   1   11   3                    40.0                59.0                69.0
DP   2    1   3       48757.0      32.0   47484.0      57.0   39302.0      79.0
DP   3    1   3       50517.0     160.0   50454.0     240.0   41295.0     400.0
"""
DAYS = ["2025-12-13", "2025-12-20", "2025-12-27", "2026-02-01"]
DADGNL = """\
&   cod  ss      nome   ip   infl disp    cvu    infl disp    cvu    infl disp    cvu
TG   86   1   SANTA CRUZ 1     0.0500.0    231.79  0.0500.0    231.79  0.0500.0    231.79
TG   15   1   LUIZORMELO 1     0.0204.0    349.90  0.0204.0    349.90  0.0204.0    349.90
TG   15   1   LUIZORMELO 3     0.0  0.0      0.00  0.0  0.0      0.00  0.0  0.0      0.00
TG   15   1   LUIZORMELO 4    10.0100.0    300.00 10.0200.0    300.00 10.0204.0    350.00
TG   15   1   LUIZORMELO 5     0.0 50.0    400.00  0.0 50.0    400.00  0.0 50.0    400.00
GL   15   1    8        204.0  40.     204.0  59.     204.0  69. 07022026
GL   15   1    7          0.0  40.       0.0  59.       0.0  69. 31012026
"""
OLD_CURVES = """\
& Cadastro
CURVAJUS   0001     001      885.3052  002
PPPJUS     0001     001     0.00000000000000D+00 4.08649400000000D+02 0.88530520000000D+03 -.31521360000000D-17 0.19686530000000D-04 -.25518040000000D-07 0.00000000000000D+01
PPPJUS     0001     001     4.08649400000000D+02 1.05472200000000D+03 0.88467330000000D+03 0.80666000000000D-02 -.86720890000000D-05 0.54010460000000D-08 -.13886850000000D-11
"""  # noqa: E501


@pytest.fixture
def deck(tmp_path):
    folder = tmp_path / "deck"
    folder.mkdir()
    (folder / "dadger.rv3").write_text(DADGER)
    (folder / "dadgnl.rv3").write_text(DADGNL)
    return folder


@pytest.fixture
def case(tmp_path):
    """Return a case as a bridge writes it from such a deck, without the records after the last stage."""
    folder = tmp_path / "case"
    (folder / "system").mkdir(parents=True)
    ahead = {"anticipated_config": {"lead_time_hours": 1368.0}}
    thermals = [{"id": 7, "name": "LUIZORMELO"} | ahead, {"id": 8, "name": "SANTA CRUZ"} | ahead]
    (folder / "system" / "thermals.json").write_text(json.dumps({"thermals": thermals}))
    (folder / "stages.json").write_text(
        json.dumps({"stages": [{"start_date": first, "end_date": end} for first, end in itertools.pairwise(DAYS)]})
    )
    starts = ["2026-02-01", "2026-02-08", "2026-03-08"]
    bounds = [
        {"thermal_id": id_, "post_study_stage_index": at, "cost_per_mwh": 0.0, "min_mw": 0.0, "max_mw": 0.0}
        for id_ in (7, 8)
        for at in range(3)
    ]
    stages = [{"start_date": start, "duration_hours": 168.0} for start in starts]
    (folder / "post_study_stages.json").write_text(json.dumps({"stages": stages, "thermal_bounds": bounds}))
    orders = [
        {"thermal_id": 7, "start_date": start, "end_date": "2026-02-14", "value_mw": 0.0}
        for start in ("2026-01-31", "2026-02-07")
    ]
    (folder / "initial_conditions.json").write_text(json.dumps({"past_anticipated_commitments": orders}))
    return folder


def test_late_records_are_detected_and_listed(deck):
    (repair,) = find_repairs(deck)
    assert repair.name == "late-gas-stages"
    assert "after the last stage (3): LUIZORMELO stage 4, LUIZORMELO stage 5" in repair.finding
    assert "months after the horizon" in in_words([repair])


def test_deck_without_late_records_needs_no_repair(deck):
    kept = [line for line in DADGNL.splitlines() if "LUIZORMELO 4" not in line and "LUIZORMELO 5" not in line]
    (deck / "dadgnl.rv3").write_text("\n".join(kept))
    assert find_repairs(deck) == []


def test_records_become_comments(deck):
    (repair,) = find_repairs(deck)
    repair.edit(deck)
    edited = (deck / "dadgnl.rv3").read_text().splitlines()
    assert [line.lstrip("&") for line in edited] == [line.lstrip("&") for line in DADGNL.splitlines()]
    assert [line[25:27] for line in edited if line.startswith("&TG")] == [" 4", " 5"]
    assert find_repairs(deck) == []


def test_bounds_after_the_horizon_follow_the_month(deck, case):
    (repair,) = find_repairs(deck)
    repair.finish(case)
    rows = json.loads((case / "post_study_stages.json").read_text())["thermal_bounds"]
    ours = [row for row in rows if row["thermal_id"] == 7]
    # February is the stage after the last (4), March the next (5); means over blocks of 160, 240 and 400 hours.
    february = {"cost_per_mwh": 325.0, "min_mw": 10.0, "max_mw": (100 * 160 + 200 * 240 + 204 * 400) / 800}
    for row in ours[:2]:
        assert {name: row[name] for name in february} == pytest.approx(february, rel=1e-12)
    assert ours[2]["max_mw"] == 50.0 and ours[2]["cost_per_mwh"] == 400.0
    assert {row["max_mw"] for row in rows if row["thermal_id"] == 8} == {0.0}, "a plant without late records stays"


def test_order_after_the_horizon_has_the_limits_of_its_month(deck, case):
    (repair,) = find_repairs(deck)
    repair.finish(case)
    before, after = json.loads((case / "initial_conditions.json").read_text())["past_anticipated_commitments"]
    assert before["value_mw"] == 0.0, "it begins before the end of the study"
    assert after["value_mw"] == pytest.approx((100 * 160 + 200 * 240 + 204 * 400) / 800), "204 MW, limited"


def test_blank_hours_after_the_horizon_count_equally(deck, case):
    blank = "GL   15   1    8        204.0          100.0          100.0      07022026"
    lines = [blank if line.endswith("07022026") else line for line in DADGNL.splitlines()]
    (deck / "dadgnl.rv3").write_text("\n".join(lines))
    (repair,) = find_repairs(deck)
    repair.finish(case)
    _, after = json.loads((case / "initial_conditions.json").read_text())["past_anticipated_commitments"]
    assert after["value_mw"] == pytest.approx(404.0 / 3.0)


def test_revision_number_is_read_from_deck(deck):
    (deck / "dadgnl.rv0").write_text("")
    (deck / "caso.dat").write_text("rv3\n")
    assert [repair.name for repair in find_repairs(deck)] == ["late-gas-stages"]
    (deck / "caso.dat").write_text("rv0\n")
    assert find_repairs(deck) == []


@pytest.mark.parametrize(("day", "is_last"), [("13   12", False), ("25   10", True), ("20   12", False)])
def test_study_that_begins_with_the_last_week_of_a_month_is_recognised(deck, day, is_last):
    (deck / "dadger.rv3").write_text(DADGER.replace("13   12", day))
    assert begins_with_last_week(deck) is is_last


# A revision of December 2025: two weeks, then January until the first of February, longer than its four weeks.
LAST_STAGE = DADGER.replace("DT  13", "DT  20").replace("400.0\n", "296.0\n")
WEEKS = "GS   1   2\nGS   2   4\nGS   3   4\n"
ORDERS = """\
GL   15   1    1        204.0  40.     204.0  59.     204.0  69. 20122025
GL   15   1    2        204.0  32.     204.0  57.     204.0  79. 27122025
GL   15   1    3        300.0  40.     300.0  59.     300.0  69. 03012026
GL   15   1    4          0.0  32.       0.0  57.       0.0  79. 10012026
"""


@pytest.fixture
def without_last_orders(deck, case):
    """Return deck and case of a revision whose last stage the bridges leave without orders."""
    plants = [line for line in DADGNL.splitlines() if line.startswith("TG") and "LUIZORMELO 1" in line]
    (deck / "dadger.rv3").write_text(LAST_STAGE)
    (deck / "dadgnl.rv3").write_text("\n".join([*plants, WEEKS + ORDERS]))
    days = ["2025-12-20", "2025-12-27", "2026-01-03", "2026-02-01"]
    stages = [{"start_date": first, "end_date": end} for first, end in itertools.pairwise(days)]
    (case / "stages.json").write_text(json.dumps({"stages": stages}))
    windows = [
        {"thermal_id": 7, "start_date": first, "end_date": end, "value_mw": 204.0}
        for first, end in itertools.pairwise(days[:-1])
    ]
    (case / "initial_conditions.json").write_text(json.dumps({"past_anticipated_commitments": windows}))
    return deck, case


def test_orders_of_the_last_stage_are_added(without_last_orders):
    deck, case = without_last_orders
    (repair,) = find_repairs(deck)
    assert repair.name == "last-stage-orders"
    assert "for 2 of 3 stages" in repair.finding
    repair.edit(deck)
    repair.finish(case)
    windows = json.loads((case / "initial_conditions.json").read_text())["past_anticipated_commitments"]
    assert [(window["start_date"], window["end_date"], window["value_mw"]) for window in windows] == [
        ("2025-12-20", "2025-12-27", 204.0),
        ("2025-12-27", "2026-01-03", 204.0),
        ("2026-01-03", "2026-02-01", pytest.approx(150.0)),  # two weeks of 168 hours, 300 and 0 MW, below 204
    ]


def test_month_of_whole_weeks_needs_no_orders(without_last_orders):
    deck, _ = without_last_orders
    (deck / "dadger.rv3").write_text(LAST_STAGE.replace("296.0\n", "272.0\n"))
    assert find_repairs(deck) == []


RESTRICTIONS = """\
RE  461   1    3
LU  461   1      4155.20   6974.00   3966.20   6785.00             6220.50
LU  461   3      4211.20   7030.00   4019.20   6838.00   3446.70   6265.50
FU  461   1    66         1.0 50
RE  462   2    2
LU  462   1      2000.00             2000.00             2000.00
FU  462   1    66         1.0 60
RE  500   1    3
LU  500   1                9000.00
FU  500   1    66         1.0
RE  501   1    3
FU  501   1    66         1.0 50
FU  501   1    18         1.0
"""


def test_limits_of_a_frequency_become_those_of_a_unit_group(deck, case):
    (deck / "dadger.rv3").write_text(DADGER + RESTRICTIONS)
    (deck / "dadgnl.rv3").unlink()
    assert find_repairs(deck) == [], "novomodelo-bridge reads them right"
    (repair,) = find_repairs(deck, "decomp", BRIDGE_0_18)
    assert "restrictions 461 (50 Hz), 462 (60 Hz) limit some units of ITAIPU" in repair.finding
    repair.edit(deck)
    edited = (deck / "dadger.rv3").read_text().splitlines()
    assert [line[5:8] for line in edited if line.startswith("&")] == ["461"] * 4 + ["462"] * 3
    groups = [{"id": at, "max_generation_mw": 7000.0} for at in (0, 1)]
    (case / "system" / "hydros.json").write_text(
        json.dumps({"hydros": [{"id": 47, "name": "ITAIPU", "unit_groups": groups}]})
    )
    blocks = [{"id": at} for at in range(3)]
    (case / "stages.json").write_text(json.dumps({"stages": [{"id": at, "blocks": blocks} for at in range(3)]}))
    path = case / "constraints" / "hydro_unit_group_bounds.parquet"
    path.parent.mkdir()
    whole_stage = {"hydro_id": 47, "hydro_unit_group_id": 1, "stage_id": 1, "block_id": None}
    row = whole_stage | {"min_generation_mw": 2500.0, "max_generation_mw": None, "max_turbined_m3s": 6000.0}
    pq.write_table(pa.Table.from_pylist([row]).cast(GROUP_SCHEMA), path)
    repair.finish(case)
    rows = pq.ParquetFile(path).read().to_pylist()
    found = {(row["hydro_unit_group_id"], row["stage_id"], row["block_id"]): row for row in rows}
    limits = {key: (row["min_generation_mw"], row["max_generation_mw"]) for key, row in found.items()}
    first = [(4155.2, 6974.0), (3966.2, 6785.0), (None, 6220.5)]
    last = [(4211.2, None), (4019.2, 6838.0), (3446.7, 6265.5)]  # 7030 MW is more than the machines have
    expected = {(0, stage, block): pair for stage in (0, 1) for block, pair in enumerate(first)}
    expected |= {(0, 2, block): pair for block, pair in enumerate(last)}
    expected |= {(1, 1, block): (2500.0, None) for block in range(3)}  # above 2000 MW already
    assert limits == expected
    assert {row["max_turbined_m3s"] for row in rows if row["hydro_unit_group_id"] == 1} == {6000.0}


def test_newave_decks_until_2019_are_repaired(tmp_path):
    (tmp_path / "SISTEMA.DAT").write_text(
        " GERACAO DE USINAS NAO SIMULADAS\n XXX\n      XXXJAN.\n   1\n2018  10.\n   3\n2018  20.\n 999\n"
    )
    (tmp_path / "EXPH.DAT").write_text("COD\n\nXXXX\n  83 BAIXO IGUACU\n9999\n 318 FICT.STA BRA\n   x\n9999\n 54 A\n")
    (tmp_path / "REE.DAT").write_text(" REES\n NUM\n XXX\n   1 SUDESTE        1      \n   6 MADEIRA        1\n 999\n")
    (tmp_path / "RE.DAT").write_text("")
    (tmp_path / "DGER.DAT").write_text("PMO\nMES INICIO DO ESTUDO    2\nANO INICIO DO ESTUDO 2018\n")
    sources, expansion, period = find_repairs(tmp_path, "newave")
    assert (sources.name, expansion.name) == ("sources-without-block", "expansion-of-fictitious-plants")
    assert "first month of the study (2/2018)" in period.remedy
    assert "FICT.STA BRA" in expansion.finding
    for repair in (sources, expansion, period):
        repair.edit(tmp_path)
    lines = (tmp_path / "SISTEMA.DAT").read_text().splitlines()
    assert [line for line in lines if "NAOSIM" in line] == ["   1    1  NAOSIM", "   3    1  NAOSIM"]
    assert (tmp_path / "EXPH.DAT").read_text() == "COD\n\nXXXX\n  83 BAIXO IGUACU\n9999\n 54 A\n"
    assert [line[:30] for line in (tmp_path / "REE.DAT").read_text().splitlines()[3:]] == [
        "   1 SUDESTE        1   2 2018",
        "   6 MADEIRA        1   2 2018",
        " 999",
    ]
    assert find_repairs(tmp_path, "newave") == []


def test_old_tailrace_curves_keep_their_numbers(deck):
    (deck / "polinjus.dat").write_text(OLD_CURVES)
    repair = next(repair for repair in find_repairs(deck) if repair.name == "old-tailrace-file")
    repair.edit(deck)
    curve, pieces, *segments = [line.split(";") for line in (deck / "polinjus.dat").read_text().splitlines()]
    assert [curve[1], curve[2], float(curve[3])] == ["0001", "001", 885.3052]
    assert pieces[1:] == ["0001", "001", "002"]
    expected = [line.replace("D", "E").split()[3:] for line in OLD_CURVES.splitlines() if line.startswith("PPP")]
    assert [[float(number) for number in segment[4:]] for segment in segments] == [
        [float(number) for number in line] for line in expected
    ]
    assert [int(segment[3]) for segment in segments] == [1, 2]
