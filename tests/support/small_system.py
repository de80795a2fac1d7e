"""Small systems with every number known: written as a case for the programs, kept as numbers for an oracle.

Noise comes from a file of openings, so that no random number generator stands between the two.
"""

from dataclasses import dataclass, field
from datetime import date

HM3_PER_M3S_HOUR = 0.0036
DEFICIT_COST = 900.0
EXCESS_COST = 3.0
EXCHANGE_COST = 0.5
SPILLAGE_COST = 0.1
TURBINED_COST = 0.05
OUTFLOW_BELOW_COST = 60.0
EVAPORATION_COST = 1000.0
FILLING_COST = 30_000.0  # $/hm3, and the next one
STORAGE_BELOW_COST = 20_000.0
MAX_GENERATION = 1e4


@dataclass(frozen=True)
class SmallHydro:
    """`memory`: the coefficient of a first-order model, or None. `last_inflow` is the one before the study.

    planes: MW at zero, for each hm3 of the mean volume, m3/s turbined and m3/s spilled; empty: `productivity`.
    evaporation_mm: of every month. area: km2 at the least and at the largest volume, a straight line between them.
    travel_hours: until what is released arrives below; before the study it was `released_before` m3/s for years.
    filling: the stage in which the filling of `min_hm3` begins, that in which the plant enters, and the least m3/s.
    """

    bus: int
    downstream: int | None
    min_hm3: float
    max_hm3: float
    first_hm3: float
    max_turbined: float
    productivity: float
    min_outflow: float
    mean_inflow: float
    std_inflow: float
    memory: float | None = None
    last_inflow: float = 0.0
    planes: tuple[tuple[float, float, float, float], ...] = ()
    evaporation_mm: float = 0.0
    area: tuple[float, float] = (0.0, 0.0)
    travel_hours: float = 0.0
    released_before: float = 0.0
    filling: tuple[int, int, float] | None = None


@dataclass(frozen=True)
class SmallThermal:
    """lead: stages between decision and delivery; `order_mw`: decided before the study for its first stages."""

    bus: int
    cost: float
    min_mw: float
    max_mw: float
    lead: int = 0
    order_mw: float = 0.0


@dataclass(frozen=True)
class SmallLine:
    source: int
    target: int
    direct_mw: float
    reverse_mw: float
    losses_percent: float = 0.0


@dataclass(frozen=True)
class SmallSource:
    """Wind that always blows the same; taking it is rewarded."""

    bus: int
    available_mw: float
    reward: float


@dataclass(frozen=True)
class SmallContract:
    """Power bought (+1) or sold (-1) at a price that may be negative."""

    bus: int
    sign: int
    price: float
    max_mw: float


@dataclass(frozen=True)
class SmallPump:
    bus: int
    source: int
    destination: int
    consumption: float
    max_m3s: float


@dataclass(frozen=True)
class SmallNode:
    """A node of a scenario tree. parent: its place among the nodes; -1: of the root."""

    stage: int
    parent: int
    probability: float
    inflow: tuple[float, ...]


@dataclass(frozen=True)
class SmallSystem:
    """Loads are (stage, bus); noise is (stage, opening, hydro). A system with a tree has no noise."""

    loads: tuple[tuple[float, ...], ...]
    noise: tuple[tuple[tuple[float, ...], ...], ...]
    hours: tuple[float, ...]
    load_factors: tuple[float, ...]
    hydros: tuple[SmallHydro, ...]
    thermals: tuple[SmallThermal, ...]
    lines: tuple[SmallLine, ...] = ()
    sources: tuple[SmallSource, ...] = ()
    contracts: tuple[SmallContract, ...] = ()
    pumps: tuple[SmallPump, ...] = ()
    is_chronological: bool = False
    discount_rate: float = 0.0
    risk: tuple[float, float] | None = field(default=None)  # alpha and lambda of all stages
    thermal_rows: tuple[tuple[int, int, float, float], ...] = ()  # thermal, stage, most MW, $/MWh there
    turbine_rows: tuple[tuple[int, int, float], ...] = ()  # hydro, stage, most m3/s there
    storage_rows: tuple[tuple[int, int, float], ...] = ()  # hydro, stage, most hm3 at its end
    library: tuple[tuple[tuple[float, ...], ...], ...] = ()  # inflows (stage, opening, hydro) from a file; empty: none
    floor: tuple[float, float] | None = None  # least MW of all thermals in every block, $/MWh of what is missing
    tree: tuple[SmallNode, ...] = ()

    @property
    def num_stages(self) -> int:
        return len(self.loads)

    @property
    def num_buses(self) -> int:
        return len(self.loads[0])

    @property
    def num_openings(self) -> int:
        return len(self.noise[0])

    @property
    def has_memory(self) -> bool:
        return any(hydro.memory is not None for hydro in self.hydros)

    def thermal(self, index: int, stage: int) -> tuple[float, float]:
        """Most MW and $/MWh of a thermal plant in a stage."""
        plant = self.thermals[index]
        return {row[:2]: row[2:] for row in self.thermal_rows}.get((index, stage), (plant.max_mw, plant.cost))

    def max_turbined(self, hydro: int, stage: int) -> float:
        rows = {row[:2]: row[2] for row in self.turbine_rows}
        return rows.get((hydro, stage), self.hydros[hydro].max_turbined)

    def max_storage(self, hydro: int, stage: int) -> float:
        return {row[:2]: row[2] for row in self.storage_rows}.get((hydro, stage), self.hydros[hydro].max_hm3)

    def is_filling(self, hydro: int, stage: int) -> bool:
        filling = self.hydros[hydro].filling
        return filling is not None and filling[0] <= stage < filling[1]

    def is_absent(self, hydro: int, stage: int) -> bool:
        """Tell whether the dam of a plant is still open, so that water passes by."""
        filling = self.hydros[hydro].filling
        return filling is not None and stage < filling[0]

    def receiver(self, hydro: int, stage: int) -> int | None:
        """Return the next plant downstream that has a dam in this stage."""
        below = self.hydros[hydro].downstream
        return below if below is None or not self.is_absent(below, stage) else self.receiver(below, stage)

    def filling_target(self, hydro: int, stage: int) -> float:
        """Return the hm3 at the end of a stage of filling from which the least rate reaches the dead volume."""
        plant = self.hydros[hydro]
        _, entry, rate = plant.filling or (0, 0, 0.0)
        return max(0.0, plant.min_hm3 - (entry - stage - 1) * rate * HM3_PER_M3S_HOUR * sum(self.hours))

    def first_day(self, stage: int) -> date:
        return date(2024 + stage // 12, 1 + stage % 12, 1)

    def discount(self, stage: int) -> float:
        """Return the discount factor from the next stage to this one."""
        days = (self.first_day(stage + 1) - self.first_day(stage)).days
        return float((1.0 + self.discount_rate) ** (-days / 365.25))

    def inflow(self, hydro: int, stage: int, opening: int, before: float) -> float:
        """Mean and standard deviation are the same in all months, so a model of first order is this simple."""
        if self.library:
            return self.library[stage][opening][hydro]
        plant = self.hydros[hydro]
        memory = plant.memory or 0.0
        spread = plant.std_inflow * (1.0 - memory**2) ** 0.5
        return plant.mean_inflow + memory * (before - plant.mean_inflow) + spread * self.noise[stage][opening][hydro]
