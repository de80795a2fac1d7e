"""Cases of any size in the proportions of a national system: five regions, long rivers, a merit order of plants."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from generation.case_files import Example
from generation.drawing import Region, draw_system
from generation.horizon import Block, Horizon
from generation.planes import with_planes
from generation.system import Bus, Line

BLOCKS = {
    1: (Block("month", 1.0, 1.0),),
    2: (Block("peak", 0.25, 1.18), Block("rest", 0.75, 0.94)),
    3: (Block("peak", 0.1, 1.22), Block("shoulder", 0.55, 1.06), Block("night", 0.35, 0.843)),
}
REGIONS = ("Centre", "East", "North", "South", "West")
SHARES = (0.42, 0.16, 0.16, 0.18, 0.08)  # of the hydro plants, and of the load
# Share of the load that mean inflows generate: small enough that a thermal plant always sets the price. With free
# water many dispatches have the same cost, and two programs choose different ones.
HYDRO_SHARES = (0.34, 0.28, 0.36, 0.3, 0.32)
WET_MONTHS = (1, 2, 3, 8, 1)
LOAD_PEAKS = (2, 1, 12, 7, 10)
LINKS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (3, 4))
LINE_SHARE = 0.05  # of the total load, in each direction
LOAD_MW_PER_HYDRO = 420.0
THERMALS_PER_HYDRO = 0.85
THERMAL_SHARE = 0.8  # of the load
LONGEST_RIVER = 8
STRONGEST_LAG, LAG_DECAY, MEMORY = (
    0.4,
    0.55,
    0.8,
)  # coefficient of lag 1; ratio of consecutive lags; largest sum of all lags


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a case, its training, and its seed."""

    hydros: int = 160
    blocks: int = 3
    lags: int = 6
    planes: int = 0
    stages: int = 12
    openings: int = 20
    forward_passes: int = 4
    iterations: int = 4
    simulated: int = 20
    seed: int = 1


def sized(size: Size) -> Example:
    """Draw a case of that size; another seed gives other rivers, plants and costs."""
    random = Random(size.seed)
    load_mw = LOAD_MW_PER_HYDRO * size.hydros
    regions = [_region(random, number, count, load_mw) for number, count in enumerate(split(size.hydros))]
    capacity = round(LINE_SHARE * load_mw, 1)
    links = [Line(source, target, direct_mw=capacity, reverse_mw=capacity) for source, target in LINKS]
    system = draw_system(size.seed, regions, links, memory(size.lags))
    return Example(
        with_planes(system, size.planes) if size.planes else system,
        Horizon(2030, size.stages, size.openings, BLOCKS[size.blocks], 0.08),
        forward_passes=size.forward_passes,
        iterations=size.iterations,
        simulated=size.simulated,
        correlation=0.7,
        wetness=0.85,
    )


def split(hydros: int) -> list[int]:
    """Split plants by region: shares rounded down, the rest in the first."""
    counts = [int(hydros * share) for share in SHARES]
    return [counts[0] + hydros - sum(counts), *counts[1:]]


def memory(lags: int) -> Sequence[float]:
    """Return standardised coefficients, decreasing with the lag; their sum is below one: inflows are stationary."""
    falling = [STRONGEST_LAG * LAG_DECAY**lag for lag in range(lags)]
    scale = min(1.0, MEMORY / sum(falling)) if falling else 1.0
    return [round(scale * value, 4) for value in falling]


def _region(random: Random, number: int, hydros: int, load_mw: float) -> Region:
    share = round(SHARES[number] * load_mw, 1)
    return Region(
        bus=Bus(REGIONS[number], share, load_swing=0.06, peak_month=LOAD_PEAKS[number]),
        cascades=tuple(_rivers(random, hydros)),
        hydro_share=HYDRO_SHARES[number] if hydros else 0.0,
        wet_month=WET_MONTHS[number],
        thermals=max(1, round(THERMALS_PER_HYDRO * hydros)),
        thermal_share=THERMAL_SHARE,
    )


def _rivers(random: Random, hydros: int) -> Iterator[int]:
    """Return the numbers of plants of the rivers of a region."""
    while hydros > 0:
        length = min(hydros, 1 + int(LONGEST_RIVER * random.random()))
        yield length
        hydros -= length
