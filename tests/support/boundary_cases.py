"""The first stages of a study whose end is valued by the policy of the whole study, with facts known ahead."""

import json
from dataclasses import replace
from datetime import date

from ahead_cases import LOADS, MONTHS, RELEASES, commitments, releases, travelling, with_documents
from small_cases import thermal

WHOLE, FIRST = 4, 2
DAYS = [date.fromisoformat(month) for month in MONTHS]
# Stages after the first two: as long as those of the whole study, finer, across its months, coarser, too few.
AFTER = {
    "none": [],
    "alike": [("2024-03-01", 744.0), ("2024-04-01", 720.0)],
    "halves": [("2024-03-01", 360.0), ("2024-03-16", 384.0), ("2024-04-01", 720.0)],
    "one of two": [("2024-03-01", 744.0)],
}


def by_calendar(case):
    """Return stages with the hours of their months."""
    fields = {
        number: {
            "start_date": MONTHS[number],
            "end_date": MONTHS[number + 1],
            "blocks": [{"id": 0, "name": "K0", "hours": (DAYS[number + 1] - DAYS[number]).days * 24.0}],
        }
        for number in range(case.stages)
    }
    return replace(case, stage_fields=fields)


def water(stages, delay=1000.0, after=(), **others):
    """Return two plants with a travel time between them, over that many stages."""
    case = travelling(delay, stages=stages, load={0: list(LOADS[:stages])}, **others)
    return with_later_stages(by_calendar(case), after, [])


def with_later_stages(case, after, bounds):
    if not after:
        return case
    stages = [{"start_date": start, "duration_hours": hours} for start, hours in after]
    return replace(
        case, documents=case.documents | {"post_study_stages.json": {"stages": stages, "thermal_bounds": bounds}}
    )


def water_and_power(stages, after=(), **others):
    """Return a case with water in transit, and thermal power committed two and three months ahead."""
    plants = [
        thermal(0, 50.0, 100.0),
        thermal(1, 20.0, 40.0, anticipated_config={"lead_stages": 2}),
        thermal(2, 25.0, 40.0, anticipated_config={"lead_stages": 3}),
    ]
    load = {0: [load + 100.0 for load in LOADS[:stages]]}
    case = by_calendar(travelling(stages=stages, thermals=plants, load=load, **others))
    windows = [(MONTHS[0], MONTHS[2], 12.0), (MONTHS[2], MONTHS[3], 12.0)]  # cobre-python wants one for each side
    orders = commitments(1, [(MONTHS[0], MONTHS[2], 10.0)]) + commitments(2, windows)
    case = with_documents(case, {"past_defluences": releases(0, RELEASES), "past_anticipated_commitments": orders})
    bounds = [
        {"thermal_id": plant, "post_study_stage_index": at, "cost_per_mwh": cost, "min_mw": 0.0, "max_mw": 40.0}
        for plant, cost in ((1, 20.0), (2, 25.0))
        for at in range(len(after))
    ]
    return with_later_stages(case, after, bounds)


def with_boundary(folder, policy, **settings):
    """Add a boundary policy to the config.json of a case."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"policy": {"boundary": {"path": str(policy), **settings}}}))
    return folder
