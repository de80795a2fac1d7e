"""Invalid commitments and water in transit: every mistake is named, all in one report."""

from dataclasses import replace

import pytest
from ahead_cases import (
    LEAD_2,
    MONTHS,
    ORDERS,
    RELEASES,
    ahead,
    ahead_after_study,
    commitments,
    constrained,
    releases,
    travelling,
    travelling_in_blocks,
    with_documents,
)
from small_cases import hydro

from cobre.io.case import read_case
from cobre.io.findings import Findings

FIRST, SECOND, THIRD = MONTHS[:3]


def found_in(case, folder):
    problems = Findings()
    read_case(case.write(folder), problems)
    return [str(problem) for problem in problems.errors], [str(problem) for problem in problems.warnings]


def with_orders(*windows):
    return ahead(orders=list(windows))


def with_releases(rows, delay=400.0, **others):
    return with_documents(travelling(delay, **others), {"past_defluences": rows})


def after_study(stages=None, bounds=None):
    case = ahead_after_study()
    given = case.documents["post_study_stages.json"]
    content = {
        "stages": stages or given["stages"],
        "thermal_bounds": given["thermal_bounds"] if bounds is None else bounds,
    }
    return replace(case, documents=case.documents | {"post_study_stages.json": content})


def bound(**others):
    row = {"thermal_id": 1, "post_study_stage_index": 0, "cost_per_mwh": 1.0, "min_mw": 0.0, "max_mw": 5.0}
    return row | others


BOUNDS = [bound(), bound(post_study_stage_index=1)]
ERRORS = {
    "two leads": (
        lambda: ahead({"lead_stages": 2, "lead_time_hours": 9.0}),
        "either `lead_stages` or `lead_time_hours`",
    ),
    "no lead": (lambda: ahead({}), "either `lead_stages` or `lead_time_hours`"),
    "lead of nothing": (
        lambda: ahead({"lead_stages": 0}),
        "anticipated_config.lead_stages: is 0 (expected at least 1)",
    ),
    "hours of nothing": (
        lambda: ahead({"lead_time_hours": 0.0}),
        "anticipated_config.lead_time_hours: is 0 (expected a number above 0)",
    ),
    "lead beyond the study": (lambda: ahead({"lead_stages": 6}), "is 6, and there are 5 stages to deliver in"),
    "no orders": (with_orders, "0 of the 31 days from 2024-01-01 to 2024-02-01 have commitments"),
    "orders for too few days": (lambda: with_orders((FIRST, "2024-02-10", 1.0)), "9 of the 29 days from 2024-02-01"),
    "orders for too many days": (
        lambda: with_orders((FIRST, MONTHS[3], 1.0)),
        "31 days from 2024-03-01 to 2024-04-01 have commitments",
    ),
    "orders twice": (lambda: with_orders(*ORDERS, (SECOND, THIRD, 2.0)), "begins before the one from 2024-02-01 ends"),
    "orders backwards": (lambda: with_orders(*ORDERS, (SECOND, FIRST, 2.0)), "not after start_date"),
    "more than the plant has": (
        lambda: with_orders((FIRST, THIRD, 41.0)),
        "is 41, but the limits in stage 0 are 0 to 40 MW",
    ),
    "orders before entry": (lambda: ahead(orders=[(FIRST, THIRD, 5.0)], entry_stage_id=2), "are 0 to 0 MW"),
    "orders of an ordinary plant": (
        lambda: ahead(initial={"past_anticipated_commitments": commitments(0, ORDERS)}),
        "there is no anticipated thermal 0",
    ),
    "limits by block": (
        lambda: ahead(
            tables={
                "constraints/thermal_bounds": [
                    {"thermal_id": 1, "stage_id": 3, "block_id": 0, "max_generation_mw": 9.0}
                ]
            }
        ),
        "thermal 1 (T1), block_id: is given in stage 3",
    ),
    "decision of an ordinary plant": (
        lambda: constrained(ahead(), "anticipated_decision(0)", [(0, None, 1.0)]),
        "thermal 0 is not an anticipated plant",
    ),
    "later stages that do not follow": (
        lambda: after_study([{"start_date": "2024-06-02", "duration_hours": 720.0}], [bound()]),
        "is 2024-06-02, but the stage before it ends on 2024-06-01",
    ),
    "later stages without hours": (
        lambda: after_study([{"start_date": "2024-06-01", "duration_hours": 0.0}], [bound()]),
        "duration_hours: is 0 (expected a number above 0 and at most",
    ),
    "no bounds after the study": (
        lambda: after_study(bounds=[bound()]),
        "the study commits power for stage 1, which has no bounds",
    ),
    "bounds of no stage": (
        lambda: after_study(bounds=[*BOUNDS, bound(post_study_stage_index=2)]),
        "there are 2 stages",
    ),
    "bounds twice": (lambda: after_study(bounds=[*BOUNDS, bound()]), "appears 2 times"),
    "bounds upside down": (lambda: after_study(bounds=[bound(min_mw=9.0), BOUNDS[1]]), "min_mw: is 9, above max_mw"),
    "bounds of an ordinary plant": (
        lambda: after_study(bounds=[*BOUNDS, bound(thermal_id=0)]),
        "there is no anticipated thermal 0",
    ),
    "water back in time": (lambda: travelling(-5.0), "travel_time_hours: is -5 (expected at least 0, or null)"),
    "no releases": (lambda: with_releases([]), "releases are known for the 0 hours before 2024-01-01"),
    "releases too late": (
        lambda: with_releases(releases(0, RELEASES[1:]), 1000.0),
        "water takes 1000 hours to hydro 1, and releases are known for the 744 hours",
    ),
    "a gap between releases": (
        lambda: with_releases(releases(0, [("2023-11-01", "2023-12-01", 5.0), ("2023-12-05", FIRST, 5.0)]), 1000.0),
        "known for the 648 hours",
    ),
    "releases in the study": (
        lambda: with_releases(releases(0, [("2023-11-01", "2024-01-05", 5.0)])),
        "after the study starts",
    ),
    "releases twice": (
        lambda: with_releases(releases(0, [*RELEASES, ("2023-12-11", FIRST, 5.0)])),
        "begins before the one from",
    ),
    "negative releases": (
        lambda: with_releases(releases(0, [("2023-11-01", FIRST, -5.0)])),
        "value_m3s: is -5 (expected at least 0)",
    ),
    "releases backwards": (
        lambda: with_releases(releases(0, [*RELEASES, (FIRST, "2023-01-01", 5.0)])),
        "not after start_date",
    ),
    "releases of nobody": (lambda: with_releases(releases(0, RELEASES) + releases(9, RELEASES)), "there is no hydro 9"),
    "two times with blocks in order": (
        lambda: with_releases(
            releases(0, RELEASES) + releases(1, RELEASES),
            hydros=[
                hydro(0, downstream=2, travel_time_hours=40.0),
                hydro(1, downstream=2, travel_time_hours=50.0),
                hydro(2),
            ],
            storage={0: 60.0, 1: 20.0, 2: 5.0},
            hours=(300.0, 430.0),
            block_mode="chronological",
        ),
        "water arrives after 40, 50 hours",
    ),
}
WARNINGS = {
    "power of an anticipated plant in a constraint": (
        lambda: constrained(ahead(), "thermal_generation(1)", [(0, None, 99.0)]),
        "is power that was decided earlier",
    ),
    "power after the study": (
        ahead_after_study,
        "without `policy.boundary`, power delivered after the study has no value",
    ),
    "a lead over weeks and months": (
        lambda: ahead(
            stage_fields={
                0: {"start_date": "2023-12-25"},
                4: {"end_date": "2024-05-10", "blocks": [{"id": 0, "name": "all", "hours": 216.0}]},
            },
            orders=[("2023-12-25", THIRD, 1.0)],
        ),
        "counts a stage of 30 days like one of 9",
    ),
    "no travel time": (lambda: travelling(0.0), "is 0 and has no effect"),
    "water to nobody": (
        lambda: travelling(hydros=[hydro(0, travel_time_hours=9.0), hydro(1)]),
        "there is no plant downstream",
    ),
    "releases without travel time": (lambda: travelling(0.0), "the plant has no travel time"),
    "longer than the study": (
        lambda: travelling(9000.0, [("2022-01-01", FIRST, 5.0)]),
        "its releases never arrive",
    ),
    "storages that are no states": (
        lambda: travelling(stage_fields={1: {"state_variables": {"storage": False, "inflow_lags": True}}}),
        "state_variables.storage: is false in stage 1",
    ),
}


@pytest.mark.parametrize("name", list(ERRORS))
def test_errors(name, tmp_path):
    make, text = ERRORS[name]
    errors, _ = found_in(make(), tmp_path)
    assert any(text in error for error in errors), errors


@pytest.mark.parametrize("name", list(WARNINGS))
def test_warnings(name, tmp_path):
    make, text = WARNINGS[name]
    errors, warnings = found_in(make(), tmp_path)
    assert not errors
    assert any(text in warning for warning in warnings), warnings


def test_all_problems_are_reported_at_once(tmp_path):
    rows = releases(0, [("2023-11-01", "2024-01-05", -5.0)]) + releases(9, RELEASES)
    case = with_documents(
        travelling(thermals=ahead(LEAD_2).thermals),
        {"past_defluences": rows, "past_anticipated_commitments": commitments(1, [(FIRST, SECOND, 99.0)])},
    )
    errors, _ = found_in(case, tmp_path)
    assert len(errors) == 5, errors


@pytest.mark.parametrize("field", ["stages", "thermal_bounds"])
def test_unknown_fields_of_post_study_stages_are_reported(field, tmp_path):
    case = ahead_after_study()
    content = case.documents["post_study_stages.json"]
    corrupted = content | {field: [*content[field][:1], content[field][1] | {"colour": 1}]}
    errors, _ = found_in(replace(case, documents=case.documents | {"post_study_stages.json": corrupted}), tmp_path)
    assert any("colour" in error for error in errors), errors


def test_blocks_with_equal_times_are_valid(tmp_path):
    assert found_in(travelling_in_blocks(60.0), tmp_path)[0] == []
