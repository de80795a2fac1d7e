"""Small systems with buses, lines, contracts, thermal plants and generic constraints."""

from known_systems import known
from small_cases import GEOMETRY, THERMALS, SmallCase, contract, group, hydro, line, pump, source, thermal
from systems_machines import groups_at_two_buses
from systems_water import cascade


@known(12595878.199179742)
def contracts():
    rows = [
        {"contract_id": 0, "stage_id": 1, "block_id": 1, "min_mw": 1.0, "max_mw": 12.0, "price_per_mwh": 5.0},
        {"contract_id": 1, "stage_id": 2, "price_per_mwh": -150.0},
    ]
    return cascade(
        hours=(500.0, 230.0),
        contracts=[
            contract(0, "import", 70.0, 10.0),
            contract(1, "export", -30.0, 20.0, least=3.0),
            contract(2, "import", 10.0, 8.0, least=2.0, exit_stage_id=2),
        ],
        tables={"constraints/contract_bounds": rows},
    )


@known(106564552.32349661)
def deficit_in_steps():
    steps = ((0.05, 300.0), (20.0, 500.0), (None, 2000.0))
    return cascade(load={0: 200.0}, deficit=[{"depth_mw": depth, "cost": cost} for depth, cost in steps])


@known(27347925.027368613)
def thermals_with_entry_and_exit():
    rows = [
        {"thermal_id": 0, "stage_id": 1, "block_id": 1, "min_generation_mw": 2.0, "max_generation_mw": 4.0},
        {"thermal_id": 1, "stage_id": 2, "cost_per_mwh": 15.0},
    ]
    return cascade(
        hours=(500.0, 230.0),
        thermals=[
            thermal(0, 20.0, 20.0, entry_stage_id=1),
            thermal(1, 60.0, 25.0, exit_stage_id=3),
            thermal(2, 180.0, 15.0),
        ],
        tables={"constraints/thermal_bounds": rows},
    )


@known(18348554.685732786)
def lines_with_limits_by_block():
    rows = [{"line_id": 0, "stage_id": 1, "block_id": 1, "direct_mw": 1.0, "reverse_mw": 9.0}]
    second = line(1, 1, 0, 9.0, 0.0, exchange_cost=2.0, entry_stage_id=2)
    return groups_at_two_buses(lines=[line(0, 0, 1, 6.0, 4.0), second], tables={"constraints/line_bounds": rows})


@known(94274.15744108458)
def excess_generation():
    return cascade(load={0: 5.0}, thermals=[thermal(0, 3.0, 20.0, least=10.0), thermal(1, 2.0, 5.0)])


def all_entity_kinds():
    second = hydro(
        1,
        storage=(5.0, 40.0),
        groups=[group(0, 0, (0.0, 20.0), (0.0, 20.0)), group(1, 1, (0.0, 30.0), (0.0, 30.0))],
        evaporation={"coefficients_mm": [150.0] * 12},
    )
    first = hydro(0, downstream=1, storage=(10.0, 80.0), diversion={"downstream_id": 1, "max_flow_m3s": 4.0})
    return SmallCase(
        buses=2,
        hydros=[first, second],
        productivity={0: 0.8, 1: 0.5},
        thermals=[thermal(0, 20.0, 20.0), thermal(1, 60.0, 25.0, bus=1), thermal(2, 180.0, 15.0)],
        lines=[line(0, 0, 1, 30.0, 30.0)],
        pumps=[pump(0, 1, 0, 5.0)],
        contracts=[contract(0, "import", 70.0, 10.0), contract(1, "export", -30.0, 20.0)],
        sources=[source(0, 10.0)],
        stages=3,
        hours=(500.0, 230.0),
        load={0: [50.0, 40.0, 60.0], 1: [20.0, 25.0, 22.0]},
        inflow={0: [20.0, 5.0, 3.0], 1: [5.0, 3.0, 1.0]},
        storage={0: 50.0, 1: 20.0},
        rate=0.1,
        tables={"system/hydro_geometry": GEOMETRY[3:]},
    )


def rule(expression, least=None, most=None, slack=None, base=all_entity_kinds, **others):
    """Return a system with a constraint in every stage."""
    case = base()
    penalty = {"enabled": slack is not None} | ({"penalty": slack} if slack is not None else {})
    constraint = {"id": 1, "name": "rule", "expression": expression, "slack": penalty}
    case.documents["constraints/generic_constraints.json"] = {"constraints": [constraint]}
    row = {"constraint_id": 1, "block_id": None, "bound_lower": least, "bound_upper": most}
    rows = [{**row, "stage_id": stage} for stage in range(3)]
    case.tables["constraints/generic_constraint_bounds"] = others.get("rows", rows)
    return case


RULES = {
    "hydro_storage(0)": (30.0, None),
    "hydro_storage_final(0) + 2 * hydro_storage_final(1)": (45.0, None),
    "hydro_storage_final(0) - 0.5 * hydro_storage_initial(0)": (20.0, None, 800.0),
    "hydro_useful_volume_final(0)": (25.0, None),
    "hydro_useful_volume_final(0) - 0.5 * hydro_useful_volume_initial(0)": (10.0, None, 800.0),
    "hydro_turbined(0)": (None, 9.0),
    "hydro_turbined(1, bus=1)": (3.0, 8.0, 200.0),
    "hydro_spillage(0)": (2.0, None),
    "hydro_diversion(0)": (2.0, None),
    "hydro_outflow(0)": (12.0, 14.0, 300.0),
    "hydro_generation(1) + hydro_generation(0)": (None, 18.0),
    "hydro_generation(1, bus=0)": (4.0, None, 300.0),
    "hydro_evaporation(1)": (None, 0.05, 1.0),
    "hydro_outflow(0) - 0.5 * hydro_inflow(0)": (4.0, 9.0, 300.0),
    "hydro_inflow(1)": (12.0, 20.0, 300.0),
    "thermal_generation(0) + 0.5 * thermal_generation(1)": (None, 15.0),
    "thermal_generation(0, 1) - thermal_generation(0, 0)": (2.0, None, 150.0),
    "line_direct(0) + line_reverse(0)": (None, 3.0),
    "line_exchange(0)": (-2.0, 4.0),
    "bus_excess(0)": (1.0, None),
    "pumping_flow(0)": (2.0, 3.0),
    "pumping_power(0)": (1.0, 2.0),
    "contract_import(0) - contract_export(1)": (1.0, 2.0),
    "thermal_generation(0) <= 12": (None, None, 200.0),
    "thermal_generation(0) + hydro_generation(0) == 22": (None, None, 200.0),
    "thermal_generation(0) + 3 <= 12 + 2": (None, None),
    "hydro_storage_final(0) + thermal_generation(1)": (40.0, None, 300.0),
    "thermal_generation(0)": (8.0, 9.0, 5.0),
}
RULE_OPTIMA = {
    "hydro_storage(0)": 3821655.0405096128,
    "hydro_storage_final(0) + 2 * hydro_storage_final(1)": 3492892.9807930314,
    "hydro_storage_final(0) - 0.5 * hydro_storage_initial(0)": 4302713.274175247,
    "hydro_useful_volume_final(0)": 3930238.0055986186,
    "hydro_useful_volume_final(0) - 0.5 * hydro_useful_volume_initial(0)": 4086074.385286359,
    "hydro_turbined(0)": 4169061.937569352,
    "hydro_turbined(1, bus=1)": 3390151.6007056213,
    "hydro_spillage(0)": 3598749.3415719876,
    "hydro_diversion(0)": 3598792.7971369596,
    "hydro_outflow(0)": 3639618.598051718,
    "hydro_generation(1) + hydro_generation(0)": 4059807.299859916,
    "hydro_generation(1, bus=0)": 3388439.255653694,
    "hydro_evaporation(1)": 3388439.5549815274,
    "hydro_outflow(0) - 0.5 * hydro_inflow(0)": 3699618.5871870215,
    "hydro_inflow(1)": 3486719.5041526724,
    "thermal_generation(0) + 0.5 * thermal_generation(1)": 5698301.594901337,
    "thermal_generation(0, 1) - thermal_generation(0, 0)": 3508943.570183048,
    "line_direct(0) + line_reverse(0)": 3388464.1518153036,
    "line_exchange(0)": 3389390.032698878,
    "bus_excess(0)": 3520932.621267169,
    "pumping_flow(0)": 3467236.916595973,
    "pumping_power(0)": 3427807.089663904,
    "contract_import(0) - contract_export(1)": 3409055.0119951195,
    "thermal_generation(0) <= 12": 4145671.068890711,
    "thermal_generation(0) + hydro_generation(0) == 22": 4541404.333240114,
    "thermal_generation(0) + 3 <= 12 + 2": 4253604.3736112565,
    "hydro_storage_final(0) + thermal_generation(1)": 3496696.7071762793,
    "thermal_generation(0)": 3507880.0664038877,
}


@known(16748786.258187508)
def water_in_transit_past_plant_out_of_service():
    def base():
        return SmallCase(
            hydros=[
                hydro(0, downstream=1, storage=(10.0, 80.0)),
                hydro(1, downstream=2, storage=(5.0, 40.0), entry_stage_id=2),
                hydro(2, storage=(0.0, 20.0), turbined=(0.0, 60.0), power=(0.0, 70.0)),
            ],
            productivity={0: 0.8, 1: 0.5, 2: 1.1},
            thermals=THERMALS,
            stages=3,
            hours=(500.0, 230.0),
            load={0: [110.0, 90.0, 120.0]},
            inflow={0: [20.0, 5.0, 1.0], 1: [5.0, 3.0, 1.0], 2: [10.0, 5.0, 0.0]},
            storage={0: 50.0, 1: 20.0, 2: 10.0},
            rate=0.1,
        )

    return rule("hydro_inflow(2)", 14.0, 20.0, 300.0, base=base)
