"""Random systems with plausible numbers; the same seed gives the same system everywhere.

Only `Random.random` is used, whose numbers Python promises to keep, and everything is rounded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from generation.system import Bus, HydroPlant, Inflow, Line, System, ThermalPlant, WindFarm

HM3_PER_M3S_MONTH = 2.63  # volume of 1 m3/s over a month
CHEAPEST, MOST_EXPENSIVE = 25.0, 650.0  # $/MWh, the ends of the merit order
TECHNOLOGIES = ("nuclear", "coal", "combined cycle", "gas turbine", "diesel")  # by increasing cost


@dataclass(frozen=True, slots=True)
class Region:
    """A bus and its plants. Shares are relative to its mean load."""

    bus: Bus
    cascades: tuple[int, ...]  # plants of each river, in the order of flow
    hydro_share: float
    wet_month: int
    thermals: int
    thermal_share: float
    wind_share: float = 0.0
    windy_month: int = 8


def draw_system(seed: int, regions: Sequence[Region], links: Sequence[Line], memory: Sequence[float] = ()) -> System:
    """All regions with their plants. `memory`: the largest autoregressive coefficients, by lag."""
    random = Random(seed)
    hydros: list[HydroPlant] = []
    thermals: list[ThermalPlant] = []
    winds: list[WindFarm] = []
    for number, region in enumerate(regions):
        hydros += _hydros(random, number, region, len(hydros), memory)
        thermals += _thermals(random, number, region)
        winds += [_wind(random, number, region)] if region.wind_share else []
    buses = tuple(region.bus for region in regions)
    return System(buses, tuple(hydros), tuple(thermals), tuple(links), tuple(winds))


def _between(random: Random, low: float, high: float, digits: int = 3) -> float:
    return round(low + (high - low) * random.random(), digits)


def _hydros(random: Random, number: int, region: Region, first: int, memory: Sequence[float]) -> Iterator[HydroPlant]:
    """Draw rivers of random size, scaled so that mean inflows generate the region's share of its load."""
    rivers = [_river(random, number, region, river, length, memory) for river, length in enumerate(region.cascades)]
    energy_mw = sum(_mean_energy(river) for river in rivers)
    scale = region.hydro_share * region.bus.load_mw / energy_mw if rivers else 0.0
    below = count(first + 1)
    for river in rivers:
        flow = 0.0
        for place, plant in enumerate(river):
            downstream = next(below)
            flow += plant.inflow.mean_m3s * scale
            is_mouth = place == len(river) - 1
            yield _sized(plant, scale, flow, None if is_mouth else downstream)


def _mean_energy(river: Sequence[HydroPlant]) -> float:
    """Return the mean generation, MW, if the mean inflow passes the turbines of all plants downstream."""
    total, flow = 0.0, 0.0
    for plant in river:
        flow += plant.inflow.mean_m3s
        total += flow * plant.productivity_mw_per_m3s
    return total


def _river(
    random: Random, number: int, region: Region, river: int, length: int, memory: Sequence[float]
) -> list[HydroPlant]:
    """Draw plants with inflows of about 1 m3/s; volumes in months, and turbines in multiples, of the mean flow."""
    return [
        _plant(random, number, region, f"{region.bus.name} {river + 1}.{place + 1}", place, memory)
        for place in range(length)
    ]


def _plant(random: Random, number: int, region: Region, name: str, place: int, memory: Sequence[float]) -> HydroPlant:
    """Draw a plant: every other one of a river, starting with the first, has a large reservoir."""
    months = _between(random, 2.5, 6.0) if place % 2 == 0 else _between(random, 0.1, 0.4)
    largest_lag = len(memory) - (1 if memory and random.random() < 0.5 else 0)
    inflow = Inflow(
        mean_m3s=_between(random, 0.6, 1.4),
        swing=_between(random, 0.35, 0.65),
        peak_month=region.wet_month,
        variation=_between(random, 0.2, 0.35),
        memory=tuple(round(value * _between(random, 0.7, 1.0), 3) for value in memory[:largest_lag]),
    )
    return HydroPlant(
        name=name,
        bus=number,
        downstream=None,
        min_storage_hm3=_between(random, 0.05, 0.2),
        max_storage_hm3=months,
        initial_storage_hm3=_between(random, 0.35, 0.65),
        max_turbined_m3s=_between(random, 1.5, 2.2),
        productivity_mw_per_m3s=_between(random, 0.25, 0.9),
        min_outflow_m3s=_between(random, 0.1, 0.25),
        inflow=inflow,
    )


def _sized(plant: HydroPlant, scale: float, flow_m3s: float, downstream: int | None) -> HydroPlant:
    """Convert a plant's volumes from months and shares to hm3, and its flows from multiples to m3/s."""
    top = plant.max_storage_hm3 * flow_m3s * HM3_PER_M3S_MONTH
    bottom = plant.min_storage_hm3 * top
    return replace(
        plant,
        downstream=downstream,
        min_storage_hm3=round(bottom, 1),
        max_storage_hm3=round(top, 1),
        initial_storage_hm3=round(bottom + plant.initial_storage_hm3 * (top - bottom), 1),
        max_turbined_m3s=round(plant.max_turbined_m3s * flow_m3s, 1),
        min_outflow_m3s=round(plant.min_outflow_m3s * flow_m3s, 1),
        inflow=replace(plant.inflow, mean_m3s=round(plant.inflow.mean_m3s * scale, 2)),
    )


def _thermals(random: Random, number: int, region: Region) -> Iterator[ThermalPlant]:
    """Draw plants in merit order, by increasing cost; the cheapest quarter has a minimum generation."""
    sizes = [_between(random, 0.5, 1.5) for _ in range(region.thermals)]
    unit_mw = region.thermal_share * region.bus.load_mw / sum(sizes)
    for index, size in enumerate(sizes):
        place = (index + random.random()) / region.thermals
        max_mw = round(size * unit_mw, 1)
        technology = TECHNOLOGIES[int(place * len(TECHNOLOGIES))]
        yield ThermalPlant(
            name=f"{region.bus.name} {technology} {index + 1}",
            bus=number,
            cost_per_mwh=round(CHEAPEST * (MOST_EXPENSIVE / CHEAPEST) ** place, 2),
            max_mw=max_mw,
            min_mw=round(0.3 * max_mw, 1) if place < 0.25 else 0.0,
        )


def _wind(random: Random, number: int, region: Region) -> WindFarm:
    mean_share = _between(random, 0.35, 0.45)
    return WindFarm(
        name=f"{region.bus.name} wind",
        bus=number,
        max_mw=round(region.wind_share * region.bus.load_mw / mean_share, 1),
        mean_share=mean_share,
        swing=0.3,
        peak_month=region.windy_month,
        variation=0.2,
    )
