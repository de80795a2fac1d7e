"""Repairs of DECOMP decks: what is found, what is edited, and what becomes of the case."""

import json

import pytest

from cobre.bridge.repairs import find_repairs, in_words

# Two weeks and a month; blocks of unequal hours.
DADGER = """\
DT  13   12   2025
DP   1    1   3       50192.0      40.0   50073.0      59.0   40989.0      69.0
DP   1   11   3                    40.0                59.0                69.0
DP   2    1   3       48757.0      32.0   47484.0      57.0   39302.0      79.0
DP   3    1   3       50517.0     160.0   50454.0     240.0   41295.0     400.0
"""
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
    """What a bridge writes of such a deck, without the records after the last stage."""
    folder = tmp_path / "case"
    (folder / "system").mkdir(parents=True)
    ahead = {"anticipated_config": {"lead_time_hours": 1368.0}}
    thermals = [{"id": 7, "name": "LUIZORMELO"} | ahead, {"id": 8, "name": "SANTA CRUZ"} | ahead]
    (folder / "system" / "thermals.json").write_text(json.dumps({"thermals": thermals}))
    (folder / "stages.json").write_text(
        json.dumps({"stages": [{"end_date": "2025-12-20"}, {"end_date": "2026-02-01"}]})
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


def test_records_after_the_last_stage_are_found_and_named(deck):
    (repair,) = find_repairs(deck)
    assert repair.name == "late-gas-stages"
    assert "after the last stage (3): LUIZORMELO stage 4, LUIZORMELO stage 5" in repair.finding
    assert "months after the horizon" in in_words([repair])


def test_a_deck_that_ends_with_its_calendar_needs_none(deck):
    kept = [line for line in DADGNL.splitlines() if "LUIZORMELO 4" not in line and "LUIZORMELO 5" not in line]
    (deck / "dadgnl.rv3").write_text("\n".join(kept))
    assert find_repairs(deck) == []


def test_the_records_become_comments(deck):
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


def test_an_order_after_the_horizon_has_the_limits_of_its_month(deck, case):
    (repair,) = find_repairs(deck)
    repair.finish(case)
    before, after = json.loads((case / "initial_conditions.json").read_text())["past_anticipated_commitments"]
    assert before["value_mw"] == 0.0, "it begins before the end of the study"
    assert after["value_mw"] == pytest.approx((100 * 160 + 200 * 240 + 204 * 400) / 800), "204 MW, limited"


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
