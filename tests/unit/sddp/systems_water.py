"""Small systems with reservoirs and the flows between them."""

from known_systems import known
from small_cases import GEOMETRY, THERMALS, SmallCase, hydro, pump


def bounds(**by_hydro_and_stage):
    """Return rows of hydro_bounds, from names such as h1s0."""
    return [{"hydro_id": int(key[1]), "stage_id": int(key[3]), **values} for key, values in by_hydro_and_stage.items()]


def in_all_stages(hydro_id, stages=4, **values):
    """Return the same row of hydro_bounds for every stage."""
    return [{"hydro_id": hydro_id, "stage_id": stage, **values} for stage in range(stages)]


@known(19148970.89655936)
def cascade(**others):
    return SmallCase(
        **{
            "hydros": [
                hydro(0, downstream=1, storage=(10.0, 80.0)),
                hydro(1, downstream=2, storage=(5.0, 40.0)),
                hydro(2, storage=(0.0, 20.0), turbined=(0.0, 60.0), power=(0.0, 70.0)),
            ],
            "productivity": {0: 0.8, 1: 0.5, 2: 1.1},
            "thermals": THERMALS,
            "stages": 4,
            "load": {0: [110.0, 90.0, 120.0, 100.0]},
            "inflow": {0: [20.0, 5.0, 1.0, 2.0], 1: [5.0, 3.0, 1.0, 1.0], 2: [10.0, 5.0, 0.0, 2.0]},
            "storage": {0: 50.0, 1: 20.0, 2: 10.0},
            "rate": 0.1,
            **others,
        }
    )


@known(22768427.30911247)
def plant_that_enters_during_study(**others):
    case = cascade(**others)
    case.hydros[1]["entry_stage_id"] = 2
    return case


@known(24147600.310316794)
def plant_that_leaves():
    case = cascade()
    case.hydros[1]["exit_stage_id"] = 2
    return case


@known(29980810.228723347)
def last_plant_of_cascade_enters():
    case = cascade()
    case.hydros[2]["entry_stage_id"] = 1
    return case


@known(25065512.836358096)
def storage_below_its_limit_before_entry():
    return plant_that_enters_during_study(storage={0: 50.0, 1: 2.0, 2: 10.0})


@known(33734448.654416054)
def withdrawal_before_entry():
    rows = in_all_stages(0, water_withdrawal_m3s=2.0) + in_all_stages(1, water_withdrawal_m3s=6.0)
    return plant_that_enters_during_study(tables={"constraints/hydro_bounds": rows})


@known(26961835.9964557)
def diversion():
    case = cascade(
        tables={"constraints/hydro_bounds": bounds(h0s0={"min_diversion_m3s": 4.0}, h0s3={"min_diversion_m3s": 3.0})}
    )
    case.hydros[0] |= {"downstream_id": 2, "diversion": {"downstream_id": 1, "max_flow_m3s": 8.0}}
    return case


@known(28550431.418093648)
def diversion_to_plant_out_of_service():
    case = diversion()
    case.hydros[1]["entry_stage_id"] = 2
    return case


def channel_beside_the_river(outflow, penalties):
    river = hydro(0, downstream=1, storage=(0.0, 50.0), turbined=(0.0, 5.0), power=(0.0, 5.0), outflow=outflow)
    river["diversion"] = {"downstream_id": 1, "max_flow_m3s": 6.0}
    return SmallCase(
        hydros=[river, hydro(1, storage=(0.0, 200.0))],
        thermals=THERMALS,
        load={0: 60.0},
        inflow={0: 20.0, 1: 0.0},
        storage={0: 50.0, 1: 0.0},
        penalties=penalties,
    )


@known(2920927.1000000015)
def diverted_water_is_no_outflow_above_the_limit():
    return channel_beside_the_river((0.0, 12.0), {"spillage_cost": 0.05, "diversion_cost": 0.01})


@known(2620638.9000000004)
def diverted_water_is_no_outflow_below_the_limit():
    case = channel_beside_the_river((14.0, None), {"spillage_cost": 0.05, "diversion_cost": 0.01})
    case.inflow, case.storage = {0: 8.0, 1: 0.0}, {0: 30.0, 1: 0.0}
    return case


@known(5915549.233982276)
def pumping():
    return cascade(
        stages=3,
        hours=(500.0, 230.0),
        load={0: [110.0, 90.0, 120.0]},
        inflow={0: [20.0, 5.0, 1.0], 1: [5.0, 3.0, 1.0], 2: [10.0, 5.0, 0.0]},
        pumps=[pump(0, 2, 0, 12.0, entry_stage_id=1), pump(1, 1, 0, 6.0, least=2.0, rate=0.3)],
        tables={
            "constraints/pumping_bounds": [
                {"pumping_station_id": 1, "stage_id": 1, "block_id": 1, "min_m3s": 4.0, "max_m3s": 5.0}
            ]
        },
    )


@known(25360867.95962192)
def limits_of_spillage_and_outflow():
    case = cascade(
        tables={
            "constraints/hydro_bounds": bounds(
                h0s1={"min_spillage_m3s": 2.0}, h1s0={"max_spillage_m3s": 1.0}, h2s0={"min_storage_hm3": 6.0}
            )
        }
    )
    case.hydros[1]["outflow"]["max_outflow_m3s"] = 12.0
    return case


@known(63037274.81485283)
def excess_water():
    case = cascade(inflow={0: 60.0, 1: 9.0, 2: 2.0})
    case.hydros[1]["outflow"]["max_outflow_m3s"] = 32.0
    case.hydros[2]["outflow"]["max_outflow_m3s"] = 35.0
    return case


@known(29668197.04269371)
def minimum_outflow():
    case = cascade()
    case.hydros[0]["outflow"]["min_outflow_m3s"] = 25.0
    case.hydros[1]["outflow"]["min_outflow_m3s"] = 9.0
    return case


@known(19189922.189174965)
def storage_limits_of_a_stage():
    rows = bounds(h0s2={"min_storage_hm3": 40.0}, h0s1={"max_storage_hm3": 60.0})
    return cascade(tables={"constraints/hydro_bounds": rows})


@known(24248289.565506354)
def first_storage_outside_its_limits():
    return cascade(storage={0: 5.0, 1: 45.0, 2: 10.0})


def withdrawal(penalties, first=2.0, second=6.0, **others):
    rows = in_all_stages(0, water_withdrawal_m3s=first) + in_all_stages(1, water_withdrawal_m3s=second)
    return cascade(tables={"constraints/hydro_bounds": rows}, penalties=penalties, **others)


@known(30639208.181538537)
def withdrawal_with_its_usual_price():
    return withdrawal({})


@known(19172056.079462264)
def withdrawal_with_cheap_violation():
    """Withdrawal cannot be negative."""
    return withdrawal({"water_withdrawal_violation_cost": 1.0})


@known(71455.2098099392)
def withdrawal_above_demand():
    return withdrawal(
        {"water_withdrawal_violation_cost": 0.001, "spillage_cost": 3.0}, inflow={0: 60.0, 1: 60.0, 2: 60.0}
    )


@known(429293.4966669455)
def negative_withdrawal():
    return withdrawal({"water_withdrawal_violation_cost": 1.0}, first=0.0, second=-3.0)


@known(1654625.6921743548)
def excessive_negative_withdrawal():
    return withdrawal(
        {"water_withdrawal_violation_cost": 0.001, "spillage_cost": 3.0},
        first=0.0,
        second=-3.0,
        inflow={0: 60.0, 1: 60.0, 2: 60.0},
    )


@known(52481577.87076923)
def negative_inflows():
    return cascade(inflow={0: [-20.0, -5.0, 1.0, 2.0], 1: [5.0, 3.0, -9.0, 1.0], 2: [-10.0, 5.0, 0.0, 2.0]})


def evaporation(coefficients=(150.0, 120.0, 40.0, 200.0), **others):
    plant = hydro(0, downstream=1, storage=(10.0, 100.0))
    plant["evaporation"] = {"coefficients_mm": [*coefficients, *[0.0] * 8]}
    return SmallCase(
        **{
            "hydros": [plant, hydro(1, storage=(0.0, 30.0))],
            "thermals": THERMALS,
            "stages": 4,
            "load": {0: [70.0, 60.0, 80.0, 50.0]},
            "inflow": {0: [9.0, 3.0, 2.0, 1.0], 1: 2.0},
            "storage": {0: 60.0, 1: 10.0},
            "tables": {"system/hydro_geometry": GEOMETRY},
            "rate": 0.1,
            **others,
        }
    )


@known(5608608.746755011)
def evaporation_month_by_month():
    return evaporation()


@known(5603221.596938089)
def evaporation_around_reference_volumes():
    case = evaporation()
    case.hydros[0]["evaporation"]["reference_volumes_hm3"] = [30.0, 40.0, 50.0, 90.0, *[20.0] * 8]
    return case


@known(5448795.441966118)
def rain_on_the_reservoir():
    return evaporation((-150.0, -100.0, -40.0, -30.0))


@known(5604149.646583867)
def evaporation_block_by_block():
    return evaporation(hours=(300.0, 430.0), block_mode="chronological")


@known(5223775.567149792)
def evaporation_that_is_cheap_to_violate():
    return evaporation(penalties={"evaporation_violation_pos_cost": 1.0, "evaporation_violation_neg_cost": 3.0})


@known(22172172.97374432)
def chronological_blocks():
    case = cascade(hours=(300.0, 230.0, 200.0), block_mode="chronological", storage={0: 50.0, 1: 39.0, 2: 1.0})
    case.hydros[0]["reservoir"]["max_storage_hm3"] = 52.0
    case.documents["scenarios/load_factors.json"] = {"load_factors": [factors(stage) for stage in range(4)]}
    return case


def factors(stage):
    given = [{"block_id": block, "factor": factor} for block, factor in enumerate((0.5, 1.6, 1.1))]
    return {"bus_id": 0, "stage_id": stage, "block_factors": given}


@known(19870586.99898464)
def parallel_blocks():
    case = chronological_blocks()
    case.block_mode = "parallel"
    return case


@known(28532687.02449097)
def chronological_blocks_past_plant_out_of_service():
    case = chronological_blocks()
    case.hydros[1]["entry_stage_id"] = 2
    return case


@known(23256560.30662791)
def withdrawal_in_chronological_blocks():
    case = withdrawal({"water_withdrawal_violation_cost": 60.0}, storage={0: 50.0, 1: 5.5, 2: 0.0})
    case.hours, case.block_mode = (300.0, 430.0), "chronological"
    return case


@known(18918428.845462225)
def other_discount_rates():
    rates = {1: {"annual_discount_rate_override": 0.5}, 2: {"annual_discount_rate_override": 0.0}}
    return cascade(stage_fields=rates)


def random_inflows(**others):
    """Two reservoirs in a row with random inflows."""
    return SmallCase(
        **{
            "hydros": [hydro(0, downstream=1, storage=(5.0, 60.0)), hydro(1, storage=(2.0, 30.0))],
            "thermals": THERMALS,
            "stages": 3,
            "load": {0: 60.0},
            "inflow": {0: (8.0, 9.0), 1: (2.0, 3.0)},
            "storage": {0: 30.0, 1: 10.0},
            "openings": 4,
            "iterations": 12,
            "rate": 0.1,
            **others,
        }
    )
