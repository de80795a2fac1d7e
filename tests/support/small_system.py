"""Small systems with known numbers: written as a case for the programs, kept as numbers for an oracle.

Noise is read from a file of openings, so that both have the same numbers without a random number generator.
"""

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from small_cases import (
    PRODUCTIVITY,
    SmallCase,
    contract,
    hydro,
    line,
    months,
    penalties,
    pump,
    rows_of,
    source,
    thermal,
    volumes,
)

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
    """A source of constant power; taking it is rewarded."""

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
    """A node of a scenario tree. parent: its position among the nodes; -1: the root."""

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
    floor: tuple[float, float] | None = None  # minimum MW of all thermals in every block, $/MWh of the shortfall
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
        """Return maximum MW and $/MWh of a thermal plant in a stage."""
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
        """Return whether the dam of a plant is still open, so that water passes by."""
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
        """Return an inflow; mean and deviation are the same in all months, so a first-order model is this simple."""
        if self.library:
            return self.library[stage][opening][hydro]
        plant = self.hydros[hydro]
        memory = plant.memory or 0.0
        spread = plant.std_inflow * (1.0 - memory**2) ** 0.5
        return plant.mean_inflow + memory * (before - plant.mean_inflow) + spread * self.noise[stage][opening][hydro]


def write_case(folder: Path, system: SmallSystem, forward_passes: int, iterations: int) -> Path:
    """Write all files of the case into the folder."""
    case = SmallCase(
        hydros=[_hydro(index, plant) for index, plant in enumerate(system.hydros)],
        thermals=[_thermal(index, plant) for index, plant in enumerate(system.thermals)],
        buses=system.num_buses,
        lines=[
            line(index, one.source, one.target, one.direct_mw, one.reverse_mw, losses_percent=one.losses_percent)
            for index, one in enumerate(system.lines)
        ],
        pumps=[
            pump(index, one.source, one.destination, one.max_m3s, one.bus, rate=one.consumption)
            for index, one in enumerate(system.pumps)
        ],
        contracts=[
            contract(index, "import" if one.sign > 0 else "export", one.price, one.max_mw, one.bus)
            for index, one in enumerate(system.contracts)
        ],
        sources=[
            source(index, one.available_mw, one.bus, curtailment_cost=one.reward)
            for index, one in enumerate(system.sources)
        ],
        productivity={index: plant.productivity for index, plant in enumerate(system.hydros)},
        documents={
            "config.json": _config(system, forward_passes, iterations),
            "stages.json": _stages(system),
            "penalties.json": PENALTIES,
            "initial_conditions.json": _initial_conditions(system),
            "scenarios/load_factors.json": _load_factors(system),
            **_floor(system),
        },
        tables=_tables(system),
    )
    return case.write(folder)


PENALTIES = penalties(
    {
        "spillage_cost": SPILLAGE_COST,
        "turbined_cost": TURBINED_COST,
        "outflow_violation_below_cost": OUTFLOW_BELOW_COST,
        "evaporation_violation_cost": EVAPORATION_COST,
        "filling_target_violation_cost": FILLING_COST,
        "storage_violation_below_cost": STORAGE_BELOW_COST,
    },
    others=1000.0,
    deficit=DEFICIT_COST,
    excess=EXCESS_COST,
    line=EXCHANGE_COST,
    source=1.0,
)


def _hydro(index: int, plant: SmallHydro) -> dict[str, Any]:
    others: dict[str, Any] = {"travel_time_hours": plant.travel_hours} if plant.travel_hours else {}
    if plant.evaporation_mm:
        others["evaporation"] = {"coefficients_mm": [plant.evaporation_mm] * 12}
    if plant.filling is not None:
        start, entry, rate = plant.filling
        others |= {"entry_stage_id": entry, "filling": {"start_stage_id": start, "filling_min_rate_m3s": rate}}
    return hydro(
        index,
        plant.bus,
        plant.downstream,
        storage=(plant.min_hm3, plant.max_hm3),
        turbined=(0.0, plant.max_turbined),
        power=(0.0, MAX_GENERATION),
        outflow=(plant.min_outflow, None),
        model="fpha" if plant.planes else "constant_productivity",
        **others,
    )


def _thermal(index: int, plant: SmallThermal) -> dict[str, Any]:
    ahead = {"anticipated_config": {"lead_stages": plant.lead}} if plant.lead else {}
    return thermal(index, plant.cost, plant.max_mw, plant.bus, plant.min_mw, **ahead)


def _config(system: SmallSystem, forward_passes: int, iterations: int) -> dict[str, Any]:
    external = {"seed": 7, "inflow": {"scheme": "external"}} if system.library or system.tree else {}
    sampled = {"method": "sampled", "forward_passes": forward_passes}
    openings = {} if system.tree else {"openings": {"source": "file"}}
    return {
        "training": {
            "selection": {"method": "enumerated"} if system.tree else sampled,
            "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
            "scenario_source": openings | external,
        },
        "simulation": {"enabled": False},
        "modeling": {"inflow_non_negativity": {"method": "none"}},
    }


def _stages(system: SmallSystem) -> dict[str, Any]:
    graph: dict[str, Any] = {"type": "finite_horizon", "annual_discount_rate": system.discount_rate}
    if system.tree:
        nodes = list(enumerate(zip(system.tree, _places(system), strict=True)))
        graph["nodes"] = [{"id": id_, "stage_id": node.stage, "scenario_id": place} for id_, (node, place) in nodes]
        graph["transitions"] = [
            {"source_id": node.parent, "target_id": id_, "probability": node.probability}
            for id_, (node, _) in nodes
            if node.parent >= 0
        ]
    return {
        "policy_graph": graph,
        "stages": [_stage(system, number) for number in range(system.num_stages)],
        "pre_study_stages": [{"id": -1, "start_date": "2023-12-01", "end_date": "2024-01-01", "season_id": 11}],
        "season_definitions": months(),
    }


def _stage(system: SmallSystem, number: int) -> dict[str, Any]:
    stage: dict[str, Any] = {
        "id": number,
        "start_date": system.first_day(number).isoformat(),
        "end_date": system.first_day(number + 1).isoformat(),
        "season_id": number % 12,
        "blocks": [{"id": block, "name": f"block {block}", "hours": hours} for block, hours in enumerate(system.hours)],
        "block_mode": "chronological" if system.is_chronological else "parallel",
        "state_variables": {"storage": True, "inflow_lags": system.has_memory},
    }
    if not system.tree:
        stage["num_openings"] = system.num_openings
    if system.risk is not None:
        alpha, share = system.risk
        stage["risk_measure"] = {"cvar": {"alpha": alpha, "lambda": share}}
    return stage


def _initial_conditions(system: SmallSystem) -> dict[str, Any]:
    hydros = list(enumerate(system.hydros))
    window = {"start_date": "2023-12-01", "end_date": "2024-01-01"}
    released = [
        {"hydro_id": index, "start_date": "2023-01-01", "end_date": "2024-01-01", "value_m3s": plant.released_before}
        for index, plant in hydros
        if plant.travel_hours
    ]
    ordered = [
        {
            "thermal_id": index,
            "start_date": system.first_day(0).isoformat(),
            "end_date": system.first_day(min(plant.lead, system.num_stages)).isoformat(),
            "value_mw": plant.order_mw,
        }
        for index, plant in enumerate(system.thermals)
        if plant.lead
    ]
    ahead = {"past_defluences": released} if released else {}
    ahead |= {"past_anticipated_commitments": ordered} if ordered else {}
    return ahead | {
        "storage": volumes({index: plant.first_hm3 for index, plant in hydros if plant.filling is None}),
        "filling_storage": volumes({index: plant.first_hm3 for index, plant in hydros if plant.filling is not None}),
        "recent_observations": [
            {"hydro_id": index, **window, "value_m3s": plant.last_inflow}
            for index, plant in hydros
            if system.has_memory
        ],
    }


def _load_factors(system: SmallSystem) -> dict[str, Any]:
    factors = [{"block_id": block, "factor": factor} for block, factor in enumerate(system.load_factors)]
    rows = [
        {"bus_id": bus, "stage_id": stage, "block_factors": factors}
        for bus in range(system.num_buses)
        for stage in range(system.num_stages)
    ]
    return {"load_factors": rows}


def _floor(system: SmallSystem) -> dict[str, Any]:
    """Return the generic constraint on all thermal plants; nothing if the system has none."""
    if system.floor is None:
        return {}
    total = " + ".join(f"thermal_generation({index})" for index in range(len(system.thermals)))
    slack = {"enabled": True, "penalty": system.floor[1]}
    row = {"id": 0, "name": "floor", "expression": f"{total} >= {system.floor[0]}", "slack": slack}
    return {"constraints/generic_constraints.json": {"constraints": [row]}}


def _tables(system: SmallSystem) -> dict[str, Any]:
    """Return all tables by path; those that the system does not need are empty."""
    hydros, stages = list(enumerate(system.hydros)), range(system.num_stages)
    limits = [(*row, None) for row in system.turbine_rows] + [(*row[:2], None, row[2]) for row in system.storage_rows]
    planes = [(index, number, *plane, 1.0) for index, one in hydros for number, plane in enumerate(one.planes)]
    given: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
        # Also of the stage before the study, for the lags of the first one.
        "scenarios/inflow_seasonal_stats": (
            "hydro_id stage_id mean_m3s std_m3s",
            [(index, stage, one.mean_inflow, one.std_inflow) for index, one in hydros for stage in (-1, *stages)],
        ),
        "scenarios/load_seasonal_stats": (
            "bus_id stage_id mean_mw std_mw",
            [(bus, stage, system.loads[stage][bus], 0.0) for bus in range(system.num_buses) for stage in stages],
        ),
        "scenarios/noise_openings": (
            "stage_id opening_index entity_index value",
            [] if system.tree else _numbered(system.noise),
        ),
        "scenarios/inflow_ar_coefficients": (
            "hydro_id stage_id lag coefficient",
            [(index, stage, 1, one.memory) for index, one in hydros for stage in stages if one.memory is not None],
        ),
        "scenarios/external_inflow_scenarios": (
            "stage_id scenario_id hydro_id value_m3s",
            _numbered(system.library)
            + [
                (node.stage, place, plant, value)
                for place, node in zip(_places(system), system.tree, strict=True)
                for plant, value in enumerate(node.inflow)
            ],
        ),
        "constraints/thermal_bounds": (
            "thermal_id stage_id max_generation_mw cost_per_mwh",
            list(system.thermal_rows),
        ),
        "constraints/hydro_bounds": ("hydro_id stage_id max_turbined_m3s max_storage_hm3", limits),
        "constraints/generic_constraint_bounds": (
            "constraint_id stage_id",
            [] if system.floor is None else [(0, stage) for stage in stages],
        ),
        "system/fpha_hyperplanes": ("hydro_id plane_id gamma_0 gamma_v gamma_q gamma_s kappa", planes),
        "system/hydro_geometry": (
            "hydro_id volume_hm3 height_m area_km2",
            [
                (index, volume, 100.0 + volume / 100.0, area)
                for index, one in hydros
                if one.evaporation_mm
                for volume, area in zip((one.min_hm3, one.max_hm3), one.area, strict=True)
            ],
        ),
    }
    tables: dict[str, Any] = {name: rows_of(names, rows) if rows else {} for name, (names, rows) in given.items()}
    [energy] = PRODUCTIVITY
    tables["system/hydro_energy_productivity"] = [energy | {"hydro_id": index} for index, one in hydros if one.planes]
    return tables


def _numbered(values: tuple[tuple[tuple[float, ...], ...], ...]) -> list[tuple[Any, ...]]:
    """Return rows of stage, opening, hydro and value."""
    return [
        (stage, opening, plant, value)
        for stage, openings in enumerate(values)
        for opening, numbers in enumerate(openings)
        for plant, value in enumerate(numbers)
    ]


def _places(system: SmallSystem) -> list[int]:
    """Return the position of every node of the tree among those of its stage."""
    stages = [node.stage for node in system.tree]
    return [stages[:at].count(stage) for at, stage in enumerate(stages)]
