"""Write the example cases: `python examples/generate.py [FOLDER]` (beside this file when no folder is given).

What each shows is in its README. The files are the same on every machine: a test compares them with those kept here.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from generation.case_files import Example
from generation.drawing import Region, draw_system
from generation.files import write_case
from generation.horizon import Block, Horizon
from generation.system import Bus, HydroPlant, Inflow, Line, System, ThermalPlant

BLOCKS_OF_A_DAY = (Block("peak", 0.2, 1.25), Block("day", 0.5, 1.02), Block("night", 0.3, 0.8))
PEAK_AND_REST = (Block("peak", 0.25, 1.18, 0.94), Block("rest", 0.75, 0.94, 1.02))
WHOLE_MONTH = (Block("month", 1.0, 1.0),)


def two_reservoirs() -> Example:
    """Return a year of a large reservoir above a small one, with three thermal plants and one bus."""
    upper = HydroPlant(
        name="Upper",
        bus=0,
        downstream=1,
        min_storage_hm3=150.0,
        max_storage_hm3=1600.0,
        initial_storage_hm3=900.0,
        max_turbined_m3s=340.0,
        productivity_mw_per_m3s=0.8,
        min_outflow_m3s=30.0,
        inflow=Inflow(160.0, swing=0.5, peak_month=2, variation=0.3),
    )
    lower = HydroPlant(
        name="Lower",
        bus=0,
        downstream=None,
        min_storage_hm3=80.0,
        max_storage_hm3=420.0,
        initial_storage_hm3=250.0,
        max_turbined_m3s=520.0,
        productivity_mw_per_m3s=0.55,
        min_outflow_m3s=50.0,
        inflow=Inflow(90.0, swing=0.4, peak_month=2, variation=0.35),
    )
    thermals = (
        ThermalPlant("Combined cycle", 0, cost_per_mwh=48.0, max_mw=210.0, min_mw=60.0),
        ThermalPlant("Coal", 0, cost_per_mwh=95.0, max_mw=120.0),
        ThermalPlant("Gas turbine", 0, cost_per_mwh=240.0, max_mw=90.0),
    )
    system = System((Bus("Valley", 620.0, load_swing=0.05, peak_month=1),), (upper, lower), thermals)
    return Example(system, Horizon(2030, 12, 10, BLOCKS_OF_A_DAY, 0.08), forward_passes=4, iterations=60, simulated=200)


def four_regions() -> Example:
    """Return four regions with lines, autocorrelated inflows, and wind."""
    regions = (
        Region(Bus("Highlands", 3200.0, 0.06, 1), (3, 2), 0.78, 1, 6, 0.48),
        Region(Bus("Coast", 4100.0, 0.08, 2), (1,), 0.25, 3, 7, 0.86),
        Region(Bus("South", 1800.0, 0.05, 7), (2,), 0.55, 8, 4, 0.55),
        Region(Bus("Plains", 900.0, 0.04, 12), (), 0.0, 1, 3, 0.35, wind_share=0.9, windy_month=8),
    )
    links = (
        Line(0, 1, direct_mw=1400.0, reverse_mw=1000.0),
        Line(0, 2, direct_mw=600.0, reverse_mw=600.0),
        Line(1, 3, direct_mw=500.0, reverse_mw=700.0),
        Line(0, 3, direct_mw=300.0, reverse_mw=300.0),
    )
    system = draw_system(4, regions, links, memory=(0.55, 0.2))
    horizon = Horizon(2030, 24, 10, PEAK_AND_REST, 0.08)
    return Example(system, horizon, forward_passes=12, iterations=40, simulated=200, correlation=0.6, wetness=0.8)


def large() -> Example:
    """Return a case for benchmarks: 34 plants on twelve rivers, 64 thermal plants, five buses, two years."""
    regions = (
        Region(Bus("North", 7000.0, 0.05, 12), (4, 3, 2), 0.8, 3, 14, 0.4),
        Region(Bus("East", 9000.0, 0.08, 1), (3, 2), 0.4, 2, 16, 0.72),
        Region(Bus("Centre", 12000.0, 0.06, 2), (5, 4, 3), 0.6, 1, 18, 0.5),
        Region(Bus("West", 3000.0, 0.05, 7), (3, 2), 0.5, 8, 9, 0.6),
        Region(Bus("South", 5000.0, 0.07, 7), (2, 1), 0.45, 9, 7, 0.6),
    )
    links = (
        Line(0, 2, direct_mw=3000.0, reverse_mw=2000.0),
        Line(0, 1, direct_mw=1500.0, reverse_mw=1500.0),
        Line(1, 2, direct_mw=2500.0, reverse_mw=2500.0),
        Line(2, 3, direct_mw=1200.0, reverse_mw=1000.0),
        Line(2, 4, direct_mw=2000.0, reverse_mw=1600.0),
        Line(3, 4, direct_mw=800.0, reverse_mw=800.0),
    )
    system = draw_system(30, regions, links)
    horizon = Horizon(2030, 24, 20, WHOLE_MONTH, 0.08)
    return Example(system, horizon, forward_passes=10, iterations=20, simulated=100, correlation=0.7)


EXAMPLES = {"two_reservoirs": two_reservoirs, "four_regions": four_regions, "large": large}


def main(arguments: Sequence[str]) -> int:
    """Write all examples."""
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parent
    for name, example in EXAMPLES.items():
        files = example().files()
        write_case(folder / name, files)
        print(f"{name}: {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
