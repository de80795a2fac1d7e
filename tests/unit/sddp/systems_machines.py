"""Small systems with unit groups at several buses, production functions and filling reservoirs."""

from known_systems import known
from small_cases import GEOMETRY, PLANES, PRODUCTIVITY, THERMALS, SmallCase, group, hydro, line, thermal
from systems_water import bounds, cascade, in_all_stages


@known(18365588.026699048)
def groups_at_two_buses(**others):
    machines = [group(0, 0, (0.0, 20.0), (0.0, 18.0)), group(1, 1, (0.0, 25.0), (0.0, 30.0))]
    return SmallCase(
        **{
            "buses": 2,
            "hydros": [hydro(0, groups=machines, turbined=(0.0, 45.0), power=(0.0, 48.0))],
            "productivity": {0: 0.9},
            "thermals": [thermal(0, 20.0, 10.0), thermal(1, 60.0, 5.0, bus=1), thermal(2, 300.0, 50.0, bus=1)],
            "lines": [line(0, 0, 1, 6.0, 4.0)],
            "stages": 3,
            "hours": (500.0, 230.0),
            "load": {0: [20.0, 30.0, 25.0], 1: [30.0, 20.0, 40.0]},
            "inflow": {0: [10.0, 8.0, 4.0]},
            "storage": {0: 60.0},
            "rate": 0.1,
            **others,
        }
    )


@known(13020523.814819513)
def groups_with_minimums():
    case = groups_at_two_buses(inflow={0: [2.0, 1.0, 0.0]}, storage={0: 20.0})
    case.thermals = [thermal(0, 1.0, 60.0), thermal(1, 1.0, 60.0, bus=1)]
    case.hydros[0]["generation"] |= {"min_turbined_m3s": 12.0, "min_generation_mw": 9.0}
    case.hydros[0]["unit_groups"][0] |= {"min_turbined_m3s": 8.0, "min_generation_mw": 3.0}
    case.hydros[0]["unit_groups"][1] |= {"min_turbined_m3s": 4.0, "min_generation_mw": 6.0}
    return case


@known(5702037.717311671)
def single_group_with_minimums():
    case = cascade(storage={0: 50.0}, inflow={0: [5.0, 5.0, 2.0, 1.0]}, thermals=[thermal(0, 1.0, 200.0)])
    case.hydros = [hydro(0, groups=[group(0, 0, (10.0, 50.0), (9.0, 50.0))])]
    return case


@known(30388735.610257275)
def minimums_of_plants():
    case = cascade()
    case.hydros[0] = hydro(0, downstream=1, storage=(10.0, 80.0), turbined=(25.0, 50.0))
    case.hydros[1] = hydro(1, downstream=2, storage=(5.0, 40.0), power=(9.0, 50.0))
    return case


@known(5322012.420270271)
def groups_at_one_bus_with_power_that_limits_one_of_them():
    """Each group's power limits its own flow: 5.5 m3/s of the first, 19.2 MW / 1.11 of the second."""
    machines = [group(0, 0, (0.0, 5.5), (0.0, 19.4)), group(1, 0, (0.0, 21.4), (0.0, 19.2))]
    return SmallCase(
        hydros=[hydro(0, groups=machines, turbined=(0.0, 26.9), power=(0.0, 38.6))],
        productivity={0: 1.11},
        thermals=THERMALS,
        load={0: 80.0},
        inflow={0: 20.0},
        storage={0: 90.0},
    )


@known(24174452.6892008)
def limits_of_groups_by_stage_and_block():
    rows = [
        {"hydro_id": 0, "hydro_unit_group_id": 0, "stage_id": 1, "max_turbined_m3s": 5.0},
        {"hydro_id": 0, "hydro_unit_group_id": 1, "stage_id": 0, "block_id": 1, "max_generation_mw": 4.0},
    ]
    return groups_at_two_buses(tables={"constraints/hydro_unit_group_bounds": rows})


@known(36734758.053038165)
def groups_smaller_than_their_plant():
    case = cascade()
    case.hydros[0]["unit_groups"][0]["max_turbined_m3s"] = 9.0
    case.hydros[1]["unit_groups"][0]["max_generation_mw"] = 3.0
    return case


def planes(**others):
    tables = {"system/fpha_hyperplanes": PLANES, "system/hydro_energy_productivity": PRODUCTIVITY}
    return SmallCase(
        **{
            "hydros": [hydro(0, downstream=1, storage=(10.0, 100.0), model="fpha"), hydro(1, storage=(0.0, 30.0))],
            "thermals": THERMALS,
            "stages": 4,
            "load": {0: [70.0, 60.0, 80.0, 50.0]},
            "inflow": {0: [9.0, 3.0, 2.0, 1.0], 1: 2.0},
            "storage": {0: 60.0, 1: 10.0},
            "rate": 0.1,
            **others,
            "tables": tables | others.get("tables", {}),
        }
    )


@known(5479939.018130404)
def planes_over_two_blocks():
    return planes(hours=(400.0, 330.0))


@known(5478203.232314419)
def planes_over_chronological_blocks():
    return planes(hours=(400.0, 330.0), block_mode="chronological")


@known(79709.1965861735)
def planes_and_spillage():
    return planes(inflow={0: 90.0, 1: 2.0})


@known(13033213.748306585)
def planes_with_a_minimum_of_power():
    case = planes(hours=(400.0, 330.0), thermals=[thermal(0, 1.0, 100.0)])
    case.hydros[0] = hydro(0, downstream=1, storage=(10.0, 100.0), power=(18.0, 50.0), model="fpha")
    return case


@known(5586955.278096391)
def planes_without_turbines_in_one_stage():
    return planes(tables={"constraints/hydro_bounds": bounds(h0s1={"max_turbined_m3s": 0.0})})


def planes_at_two_buses(**others):
    case = planes(buses=2, hours=(400.0, 330.0), **others)
    case.hydros[0]["unit_groups"] = [group(0, 0, (0.0, 20.0), (0.0, 18.0)), group(1, 1, (0.0, 25.0), (0.0, 30.0))]
    return case


@known(24875757.341786977)
def planes_shared_by_two_buses():
    case = planes_at_two_buses(lines=[line(0, 0, 1, 2.0, 2.0)])
    case.load[1] = 15.0
    return case


@known(6365114.627452082)
def planes_shared_by_two_buses_with_spillage():
    return planes_at_two_buses(lines=[line(0, 0, 1, 200.0, 200.0)], inflow={0: 90.0, 1: 2.0}, load={0: 60.0, 1: 60.0})


@known(13294197.586315768)
def shares_of_planes_follow_declared_turbines():
    rows = [{"hydro_id": 0, "hydro_unit_group_id": 0, "stage_id": stage, "max_turbined_m3s": 5.0} for stage in range(4)]
    case = planes_at_two_buses(
        lines=[line(0, 0, 1, 200.0, 200.0)], tables={"constraints/hydro_unit_group_bounds": rows}
    )
    case.load[1] = 15.0
    return case


@known(6187516.4651948325)
def filling(**others):
    young = hydro(1, storage=(30.0, 80.0), entry_stage_id=2)
    young["filling"] = {"start_stage_id": 0, "filling_min_rate_m3s": 7.0}
    return SmallCase(
        **{
            "hydros": [hydro(0, downstream=1, storage=(0.0, 100.0)), young],
            "thermals": THERMALS,
            "stages": 4,
            "load": {0: [70.0, 60.0, 80.0, 50.0]},
            "inflow": {0: [9.0, 3.0, 2.0, 1.0], 1: 2.0},
            "storage": {0: 60.0},
            "filling_storage": {1: 5.0},
            "rate": 0.1,
            **others,
        }
    )


@known(6137884.888433413)
def filling_with_cheap_violation():
    return filling(penalties={"filling_target_violation_cost": 3.0, "storage_violation_below_cost": 2.0})


@known(6871935.355496346)
def filling_followed_by_expensive_minimum():
    return filling(penalties={"filling_target_violation_cost": 3.0, "storage_violation_below_cost": 90000.0})


@known(6187516.465194831)
def filling_in_chronological_blocks():
    return filling(hours=(300.0, 430.0), block_mode="chronological")


@known(9352446.446481626)
def filling_that_starts_later():
    case = filling(filling_storage={1: 0.0})
    case.hydros[1] |= {"entry_stage_id": 3, "filling": {"start_stage_id": 1, "filling_min_rate_m3s": 8.0}}
    return case


@known(593507.6532712507)
def filling_plant_spills_at_the_usual_price():
    case = filling(inflow={0: [30.0, 3.0, 20.0, 1.0], 1: 2.0, 2: 1.0}, storage={0: 60.0, 2: 0.0})
    case.hydros[0]["reservoir"]["max_storage_hm3"] = 61.0
    case.hydros[1]["downstream_id"] = 2
    case.hydros.append(hydro(2, storage=(0.0, 10.0)))
    return case


@known(7565850.8379062535)
def filling_plant_with_limits_of_its_outflow():
    case = filling_plant_spills_at_the_usual_price()
    case.hydros[1]["outflow"] = {"min_outflow_m3s": 1.0, "max_outflow_m3s": 5.0}
    return case


@known(6317968.747443948)
def filling_plant_with_withdrawal_and_evaporation():
    rows = in_all_stages(1, water_withdrawal_m3s=1.0)
    case = filling(tables={"constraints/hydro_bounds": rows, "system/hydro_geometry": GEOMETRY})
    case.hydros[1]["evaporation"] = {"coefficients_mm": [150.0] * 12}
    return case
