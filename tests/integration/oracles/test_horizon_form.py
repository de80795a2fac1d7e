"""Bounds of small cases compared with the optimum of the whole horizon, solved as one independent LP.

One case for each capability that published cases check: a clone of the repository alone has them all.
"""

import pytest
from crafted_case import CraftedCase, Period, months, write_crafted
from horizon_form import HorizonForm
from small_cases import GEOMETRY, PLANES, PRODUCTIVITY, THERMALS, SmallCase, contract, hydro, line, thermal

import cobre


def reservoir(plant=None, **others):
    """Return one plant above the sea, four stages, a river that dries up."""
    return SmallCase(
        **{
            "hydros": [plant or hydro(0, storage=(10.0, 100.0))],
            "thermals": THERMALS,
            "stages": 4,
            "load": {0: [70.0, 60.0, 80.0, 50.0]},
            "inflow": {0: [19.0, 13.0, 6.0, 1.0]},
            "storage": {0: 60.0},
            "productivity": {0: 0.9},
            **others,
        }
    )


def merit_order():
    return SmallCase(thermals=THERMALS, stages=2, load={0: [30.0, 70.0]})


def load_factors():
    return with_factors(SmallCase(thermals=THERMALS, stages=2, load={0: [40.0, 50.0]}))


def with_factors(case):
    """Return a case of two blocks, the first with much more load than the second."""
    blocks = [{"block_id": 0, "factor": 1.4}, {"block_id": 1, "factor": 0.6}]
    factors = [{"stage_id": stage, "bus_id": 0, "block_factors": blocks} for stage in range(case.stages)]
    case.documents["scenarios/load_factors.json"] = {"load_factors": factors}
    case.hours = (400.0, 330.0)
    return case


def cascade():
    return SmallCase(
        hydros=[hydro(0, downstream=1, storage=(10.0, 80.0)), hydro(1, storage=(5.0, 40.0))],
        productivity={0: 0.8, 1: 0.5},
        thermals=THERMALS,
        stages=4,
        load={0: [80.0, 70.0, 90.0, 75.0]},
        inflow={0: [20.0, 5.0, 1.0, 2.0], 1: [5.0, 3.0, 1.0, 1.0]},
        storage={0: 50.0, 1: 20.0},
    )


def transmission():
    return reservoir(
        buses=2,
        thermals=[thermal(0, 20.0, 20.0, bus=1), thermal(1, 60.0, 25.0, bus=1)],
        load={0: [30.0, 10.0, 35.0, 20.0], 1: [30.0, 60.0, 45.0, 50.0]},
        lines=[line(0, 0, 1, 15.0, 12.0)],
    )


def planes():
    tables = {"system/fpha_hyperplanes": PLANES, "system/hydro_energy_productivity": PRODUCTIVITY}
    return reservoir(hydro(0, storage=(10.0, 100.0), model="fpha"), tables=tables)


def planes_of_blocks():
    return with_factors(planes())


def evaporation():
    plant = hydro(0, storage=(10.0, 100.0), evaporation={"coefficients_mm": [150.0, 120.0, 40.0, 200.0, *[0.0] * 8]})
    return reservoir(plant, tables={"system/hydro_geometry": GEOMETRY[:3]})


def minimums_that_cannot_be_kept():
    plant = hydro(0, storage=(10.0, 100.0), outflow=(30.0, None), turbined=(25.0, 50.0), power=(28.0, 50.0))
    return reservoir(plant)


def contracts():
    return reservoir(contracts=[contract(0, "import", 90.0, 10.0), contract(1, "export", -25.0, 8.0)])


CASES = {
    "merit order": merit_order,
    "two blocks with load factors": load_factors,
    "a reservoir": reservoir,
    "a cascade": cascade,
    "discounted": lambda: reservoir(rate=0.12),
    "transmission": transmission,
    "planes of production": planes,
    "planes over two blocks": planes_of_blocks,
    "evaporation": evaporation,
    "minimums that cannot be kept": minimums_that_cannot_be_kept,
    "contracts": contracts,
}


@pytest.mark.parametrize("name", CASES)
def test_bound_equals_optimum_of_horizon(name, tmp_path):
    case = CASES[name]()
    case.iterations, case.method = 60, "none"  # no inflow correction
    result = cobre.train(case.write(tmp_path), threads=1)
    assert result.lower_bound == pytest.approx(HorizonForm(case).optimum(), rel=1e-7)
    assert abs(result.gap) <= 1e-6  # without noise the only path costs the bound


def test_optima_of_cases_differ():
    """Check that no two cases have the same optimum, so an omission in the form would show."""
    optima = [HorizonForm(build()).optimum() for build in CASES.values()]
    assert len({round(value) for value in optima}) == len(CASES)


def test_inflows_follow_their_lag(tmp_path):
    """Compare a PAR(1) without noise with z(t) = mean + phi (z(t - 1) - mean), from 200 before the study."""
    mean, phi, inflow, left = 100.0, 0.5, 200.0, 0.0
    periods = [Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", m - 1, 1) for m in range(1, 4)]
    case = CraftedCase(
        periods=periods,
        seasons=months(),
        inflow={(0, stage): (mean, 1e-9) for stage in range(-1, 3)},
        memory={(0, stage, 1): phi for stage in range(3)},
        observed=[(0, "2023-12-01", "2024-01-01", inflow)],
        load_mw=500.0,
        first_hm3=0.0,
        max_hm3=0.0,
    )
    for period in periods:  # no reservoir: up to 120 m3/s of the inflow are turbined, the rest is spilled
        inflow = mean + phi * (inflow - mean)
        hydro_mw, spilled = 0.8 * min(120.0, inflow), max(0.0, inflow - 120.0)
        hours, missing = period.all_hours, 500.0 - hydro_mw - 40.0 - 60.0 - 60.0
        left += hours * (40.0 * 40.0 + 60.0 * 110.0 + 60.0 * 300.0 + missing * 5000.0 + 0.01 * spilled)
    assert cobre.train(write_crafted(tmp_path, case), threads=1).lower_bound == pytest.approx(left, rel=1e-7)
