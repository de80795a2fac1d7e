"""Small cases with facts known ahead: thermal commitments, and water in transit."""

from dataclasses import replace
from datetime import date, timedelta

from small_cases import SmallCase, hydro, thermal, volumes

MONTHS = tuple(date(2024, month, 1).isoformat() for month in range(1, 13))
UNEVEN_DAYS, UNEVEN_HOURS = (5, 12, 4, 21, 8, 4), (100.0, 300.0, 100.0, 500.0, 200.0, 100.0)
LOADS = (60.0, 50.0, 55.0, 80.0, 30.0, 60.0)
LEAD_2 = {"lead_stages": 2}
ORDERS = [(MONTHS[0], MONTHS[1], 10.0), (MONTHS[1], MONTHS[2], 15.0)]
RELEASES = [("2023-06-01", "2023-12-01", 5.0), ("2023-12-01", "2024-01-01", 8.0)]


def commitments(plant, windows):
    """Return entries of initial_conditions.json."""
    return [{"thermal_id": plant, "start_date": a, "end_date": b, "value_mw": mw} for a, b, mw in windows]


def releases(plant, windows):
    """Return entries of initial_conditions.json."""
    return [{"hydro_id": plant, "start_date": a, "end_date": b, "value_m3s": flow} for a, b, flow in windows]


def with_documents(case, initial=None, **documents):
    """Return the case with more initial conditions, and with other files."""
    conditions = {"storage": volumes(case.storage), "filling_storage": volumes(case.filling_storage)}
    files = {"initial_conditions.json": conditions | (initial or {})}
    return replace(
        case, documents=case.documents | files | {f"{name}.json": value for name, value in documents.items()}
    )


def uneven(case):
    """Return stages of 100 to 500 hours."""
    days = [date(2024, 1, 1)]
    for length in UNEVEN_DAYS:
        days.append(days[-1] + timedelta(days=length))
    fields = {
        number: {
            "start_date": days[number].isoformat(),
            "end_date": days[number + 1].isoformat(),
            "blocks": [{"id": 0, "name": "K0", "hours": UNEVEN_HOURS[number]}],
        }
        for number in range(len(UNEVEN_DAYS))
    }
    return replace(case, stages=len(UNEVEN_DAYS), load={0: list(LOADS)}, stage_fields=fields), [
        day.isoformat() for day in days
    ]


def loads_by_block(case, *factors):
    """Return loads that differ by block."""
    rows = [{"block_id": block, "factor": factor} for block, factor in enumerate(factors)]
    content = [{"bus_id": 0, "stage_id": stage, "block_factors": rows} for stage in range(case.stages)]
    return replace(case, documents=case.documents | {"scenarios/load_factors.json": {"load_factors": content}})


def constrained(case, expression, rows, penalty=None):
    """Return the case with one generic constraint; rows: (stage, lower, upper)."""
    slack = {"enabled": penalty is not None} | ({"penalty": penalty} if penalty is not None else {})
    constraint = {"id": 0, "name": "rule", "expression": expression, "slack": slack}
    bounds = [
        {"constraint_id": 0, "stage_id": stage, "block_id": None, "bound_lower": low, "bound_upper": high}
        for stage, low, high in rows
    ]
    documents = case.documents | {"constraints/generic_constraints.json": {"constraints": [constraint]}}
    return replace(case, documents=documents, tables=case.tables | {"constraints/generic_constraint_bounds": bounds})


# Thermal power that is decided ahead


def ahead(config=LEAD_2, orders=ORDERS, least=0.0, initial=None, **others):
    """Return a case with an ordinary plant and a cheaper one that commits ahead."""
    fields = {name: others.pop(name) for name in ("entry_stage_id", "exit_stage_id") if name in others}
    plant = thermal(1, 20.0, 40.0, least=least, anticipated_config=config, **fields)
    case = SmallCase(
        thermals=[thermal(0, 50.0, 100.0), plant],
        **{"stages": 5, "load": {0: list(LOADS[:5])}, "rate": 0.12, "iterations": 10} | others,
    )
    return with_documents(case, {"past_anticipated_commitments": commitments(1, orders)} | (initial or {}))


def ahead_bounds():
    """Return a case with limits and costs by stage, and two blocks with different loads."""
    rows = [
        {"thermal_id": 1, "stage_id": 2, "min_generation_mw": 8.0, "max_generation_mw": 12.0},
        {"thermal_id": 1, "stage_id": 3, "max_generation_mw": 22.0, "cost_per_mwh": 60.0},
        {"thermal_id": 1, "stage_id": 4, "cost_per_mwh": 70.0},
    ]
    case = ahead(least=5.0, hours=(300.0, 430.0), tables={"constraints/thermal_bounds": rows})
    return loads_by_block(case, 0.4, 1.4)


def ahead_hours(hours, known):
    """Return a case with a lead in hours over uneven stages; the first `known` stages have past commitments."""
    case, days = uneven(ahead({"lead_time_hours": hours}, orders=[]))
    orders = [(days[stage], days[stage + 1], 10.0 + stage) for stage in range(known)]
    return with_documents(case, {"past_anticipated_commitments": commitments(1, orders)})


def ahead_after_study(least=3.0):
    """Return a case with deliveries in two stages after the study."""
    stages = [
        {"start_date": "2024-06-01", "duration_hours": 720.0},
        {"start_date": "2024-07-01", "duration_hours": 744.0},
    ]
    bounds = [
        {"thermal_id": 1, "post_study_stage_index": at, "cost_per_mwh": 30.0 + at, "min_mw": least + at, "max_mw": 25.0}
        for at in range(2)
    ]
    return with_documents(
        ahead(),
        {"past_anticipated_commitments": commitments(1, ORDERS)},
        post_study_stages={"stages": stages, "thermal_bounds": bounds},
    )


def ahead_random(lead=2, risk=None, **others):
    """Return a case with a reservoir of uncertain inflow in addition to the plants."""
    fields = {stage: {"risk_measure": risk} for stage in range(4)} if risk else {}
    orders = [(MONTHS[stage], MONTHS[stage + 1], 10.0) for stage in range(lead)]
    return ahead(
        {"lead_stages": lead},
        orders,
        initial={"storage": volumes({0: 40.0})},
        hydros=[hydro(0)],
        inflow={0: (18.0, 6.0)},
        storage={0: 40.0},
        stages=4,
        load={0: list(LOADS[:4])},
        openings=3,
        iterations=40,
        forward_passes=2,
        stage_fields=fields,
        **others,
    )


# Water that is under way


def travelling(delay=1000.0, windows=RELEASES, **others):
    """Return two plants with a travel time between them."""
    base = {
        "hydros": [hydro(0, downstream=1, travel_time_hours=delay), hydro(1)],
        "thermals": [thermal(0, 50.0, 100.0)],
        "stages": 5,
        "load": {0: list(LOADS[:5])},
        "rate": 0.12,
        "iterations": 15,
        "inflow": {0: 10.0, 1: 2.0},
        "storage": {0: 60.0, 1: 20.0},
    }
    case = SmallCase(**base | others)
    return with_documents(case, {"past_defluences": releases(0, windows)})


def travelling_uneven(hours):
    """Return the same over stages of 100 to 500 hours."""
    return uneven(travelling(hours))[0]


def travelling_in_blocks(hours, mode="chronological"):
    """Return the same with chronological blocks of 200, 330 and 200 hours."""
    case = travelling(hours, hours=(200.0, 330.0, 200.0), block_mode=mode, stages=4, load={0: list(LOADS[:4])})
    return loads_by_block(case, 0.4, 1.4, 0.9)


def confluence(first=400.0, second=1000.0):
    """Return two plants above a third one, each with its own travel time."""
    plants = [
        hydro(0, downstream=2, travel_time_hours=first),
        hydro(1, downstream=2, travel_time_hours=second),
        hydro(2),
    ]
    case = travelling(hydros=plants, inflow={0: 10.0, 1: 6.0, 2: 2.0}, storage={0: 60.0, 1: 40.0, 2: 20.0})
    windows = releases(0, RELEASES) + (releases(1, [("2023-06-01", "2024-01-01", 3.0)]) if second else [])
    return with_documents(case, {"past_defluences": windows})


def cascade_past_a_plant_to_come():
    """Return a cascade whose middle plant has a travel time and enters later."""
    plants = [hydro(2, downstream=0), hydro(0, downstream=1, travel_time_hours=400.0, entry_stage_id=2), hydro(1)]
    return travelling(hydros=plants, inflow={0: 10.0, 1: 2.0, 2: 4.0}, storage={0: 60.0, 1: 20.0, 2: 30.0})


def both():
    """Return a case with water in transit, and leads of two and of three stages."""
    plants = [
        thermal(0, 50.0, 100.0),
        thermal(1, 20.0, 40.0, anticipated_config=LEAD_2),
        thermal(2, 25.0, 40.0, anticipated_config={"lead_stages": 3}),
    ]
    case = travelling(thermals=plants, load={0: [load + 100.0 for load in LOADS[:5]]})
    orders = commitments(1, [(MONTHS[0], MONTHS[2], 10.0)]) + commitments(2, [(MONTHS[0], MONTHS[3], 12.0)])
    return with_documents(case, {"past_defluences": releases(0, RELEASES), "past_anticipated_commitments": orders})


def random_both():
    """Return the same case with uncertain inflows."""
    case = both()
    return replace(case, inflow={0: (10.0, 4.0), 1: (2.0, 1.0)}, openings=3, stages=4, iterations=60, forward_passes=2)


CVAR = {"cvar": {"alpha": 0.5, "lambda": 0.4}}
EVERY = [0, 1, 2, 3, 4]
ALIKE = {
    "lead of two stages": ahead,
    "lead of one stage": lambda: ahead({"lead_stages": 1}, ORDERS[:1]),
    "lead as long as the study": lambda: ahead({"lead_stages": 5}, [(MONTHS[0], MONTHS[5], 10.0)]),
    "orders from before the start": lambda: ahead(orders=[("2023-12-01", MONTHS[2], 10.0)]),
    "limits by stage and two blocks": ahead_bounds,
    "exit before the end": lambda: ahead(least=5.0, exit_stage_id=4),
    "entry at the first decision": lambda: ahead(orders=[(MONTHS[0], MONTHS[2], 0.0)], entry_stage_id=2),
    "entry after the first decision": lambda: ahead(orders=[(MONTHS[0], MONTHS[2], 0.0)], entry_stage_id=3),
    "lead of 1000 hours": lambda: ahead({"lead_time_hours": 1000.0}, ORDERS[:1]),
    "lead of two stages in hours": lambda: ahead({"lead_time_hours": 1460.0}),
    "100 hours over uneven stages": lambda: ahead_hours(100.0, 1),
    "250 hours over uneven stages": lambda: ahead_hours(250.0, 1),
    "deliveries after the study": ahead_after_study,
    "limit of decisions": lambda: constrained(ahead(), "anticipated_decision(1)", [(s, None, 25.0) for s in EVERY]),
    "soft least decision": lambda: constrained(
        ahead(), "anticipated_decision(1)", [(0, 35.0, None), (2, 35.0, None)], 10.0
    ),
    "decision and power in blocks": lambda: constrained(
        ahead(hours=(300.0, 430.0)), "anticipated_decision(1) + thermal_generation(0)", [(0, None, 60.0)], 30.0
    ),
    "limit of what is delivered": lambda: constrained(
        ahead(hours=(300.0, 430.0)),
        "thermal_generation(1) + thermal_generation(0)",
        [(s, None, 60.0) for s in EVERY],
        30.0,
    ),
    "uncertain inflow": ahead_random,
    "uncertain inflow, lead of one": lambda: ahead_random(1),
    "uncertain inflow, averse": lambda: ahead_random(risk=CVAR),
    "100 hours under way": lambda: travelling(100.0),
    "744 hours under way": lambda: travelling(744.0),
    "1000 hours under way": travelling,
    "2500 hours under way": lambda: travelling(2500.0),
    "half an hour under way": lambda: travelling(0.5),
    "60 hours over uneven stages": lambda: travelling_uneven(60.0),
    "700 hours over uneven stages": lambda: travelling_uneven(700.0),
    "60 hours in blocks in order": lambda: travelling_in_blocks(60.0),
    "400 hours in blocks in order": lambda: travelling_in_blocks(400.0),
    "800 hours in blocks in order": lambda: travelling_in_blocks(800.0),
    "1200 hours in blocks in order": lambda: travelling_in_blocks(1200.0),
    "400 hours in parallel blocks": lambda: travelling_in_blocks(400.0, "parallel"),
    "two times into one plant": confluence,
    "one time, and at once": lambda: confluence(400.0, None),
    "the plant below leaves": lambda: travelling(
        400.0, hydros=[hydro(0, downstream=1, travel_time_hours=400.0), hydro(1, exit_stage_id=3)]
    ),
    "the plant above enters": lambda: travelling(
        400.0, hydros=[hydro(0, downstream=1, travel_time_hours=400.0, entry_stage_id=2), hydro(1)]
    ),
    "past a plant to come": cascade_past_a_plant_to_come,
    "least inflow from afar": lambda: constrained(
        travelling(1000.0), "hydro_inflow(1)", [(s, 13.0, None) for s in EVERY], 80.0
    ),
    "least inflow in blocks": lambda: constrained(
        travelling_in_blocks(100.0), "hydro_inflow(1)", [(s, 14.0, None) for s in range(4)], 80.0
    ),
    "both": both,
    "both, with uncertain inflow": random_both,
}
# Bounds of the first iteration hang on a choice among optimal duals there.
DEGENERATE_AT_FIRST = frozenset(
    {
        "1200 hours in blocks in order",
        "400 hours in parallel blocks",
        "least inflow in blocks",
    }
)
