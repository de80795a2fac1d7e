"""The builder of small cases: entities as plain dictionaries with sensible defaults, written as a case directory.

`SmallCase` has a field for what tests vary most; `documents` and `tables` replace any file of the case.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

DATE = "2020-01-01"  # of all entities: before the first stage of any calendar
STARTS = tuple(f"{2024 + month // 12}-{1 + month % 12:02}-01" for month in range(37))
INTEGERS = {"lag": pa.int32(), "opening_index": pa.uint32(), "entity_index": pa.uint32()}
HYDRO_COSTS = (
    "spillage_cost",
    "turbined_cost",
    "diversion_cost",
    "storage_violation_below_cost",
    "filling_target_violation_cost",
    "turbined_violation_below_cost",
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "generation_violation_below_cost",
    "evaporation_violation_cost",
    "water_withdrawal_violation_cost",
)


def penalties(
    hydro: Mapping[str, float], others: float = 0.0, deficit: float = 1000.0, excess: float = 0.5, line=0.25, source=2.0
) -> dict[str, Any]:
    """Return penalties.json. hydro: costs of hydro plants; missing ones are `others`."""
    return {
        "bus": {"deficit_segments": [{"depth_mw": None, "cost": deficit}], "excess_cost": excess},
        "line": {"exchange_cost": line},
        "hydro": dict.fromkeys(HYDRO_COSTS, others) | dict(hydro),
        "non_controllable_source": {"curtailment_cost": source},
    }


PENALTIES = penalties(
    {
        "spillage_cost": 0.01,
        "diversion_cost": 0.02,
        "storage_violation_below_cost": 900.0,
        "filling_target_violation_cost": 3000.0,
        "turbined_violation_below_cost": 450.0,
        "outflow_violation_below_cost": 400.0,
        "outflow_violation_above_cost": 350.0,
        "generation_violation_below_cost": 500.0,
        "evaporation_violation_cost": 5000.0,
        "water_withdrawal_violation_cost": 600.0,
        "turbined_cost": 0.005,
        "inflow_nonnegativity_cost": 700.0,
    }
)


def entity(number, name, **fields):
    """Return the fields that every entity has, and more."""
    return {"id": number, "name": f"{name}{number}", "operational_start_date": DATE, **fields}


def machines(turbined, power):
    """Return the limits of turbines: (least, most) m3/s and MW."""
    return {
        "min_turbined_m3s": turbined[0],
        "max_turbined_m3s": turbined[1],
        "min_generation_mw": power[0],
        "max_generation_mw": power[1],
    }


def group(number, bus=0, turbined=(0.0, 50.0), power=(0.0, 50.0)):
    """Return machines that feed one bus."""
    return {"id": number, "name": f"G{number}", "bus_id": bus, **machines(turbined, power)}


def hydro(
    number,
    bus=0,
    downstream=None,
    storage=(0.0, 100.0),
    turbined=(0.0, 50.0),
    power=(0.0, 50.0),
    outflow=(0.0, None),
    model="constant_productivity",
    groups=None,
    **others,
):
    """Return a hydro plant; without groups, one group copies the plant's own limits."""
    return entity(
        number,
        "H",
        downstream_id=downstream,
        reservoir={"min_storage_hm3": storage[0], "max_storage_hm3": storage[1]},
        outflow={"min_outflow_m3s": outflow[0], "max_outflow_m3s": outflow[1]},
        generation={"model": model, **machines(turbined, power)},
        unit_groups=groups or [group(0, bus, turbined, power)],
        **others,
    )


def thermal(number, cost, most, bus=0, least=0.0, **others):
    """Return a thermal plant."""
    return entity(number, "T", bus_id=bus, cost_per_mwh=cost, generation={"min_mw": least, "max_mw": most}, **others)


def line(number, source, target, direct, reverse, **others):
    """Return a line."""
    capacity = {"direct_mw": direct, "reverse_mw": reverse}
    return entity(number, "L", source_bus_id=source, target_bus_id=target, capacity=capacity, **others)


def pump(number, source, destination, most, bus=0, least=0.0, rate=0.5, **others):
    """Return a pumping station."""
    return entity(
        number,
        "P",
        bus_id=bus,
        source_hydro_id=source,
        destination_hydro_id=destination,
        consumption_mw_per_m3s=rate,
        flow={"min_m3s": least, "max_m3s": most},
        **others,
    )


def contract(number, kind, price, most, bus=0, least=0.0, **others):
    """Return an import or export contract."""
    limits = {"min_mw": least, "max_mw": most}
    return entity(number, "C", bus_id=bus, type=kind, price_per_mwh=price, limits=limits, **others)


def source(number, most, bus=0, **others):
    """Return a non-controllable source."""
    return entity(number, "W", bus_id=bus, max_generation_mw=most, **others)


@dataclass
class SmallCase:
    """A case in memory. Loads and inflows: by id a mean for every stage, or (mean, std) pairs."""

    hydros: list = field(default_factory=list)
    thermals: list = field(default_factory=list)
    buses: int = 1
    lines: list = field(default_factory=list)
    pumps: list = field(default_factory=list)
    contracts: list = field(default_factory=list)
    sources: list = field(default_factory=list)
    stages: int = 2
    hours: tuple = (730.0,)
    block_mode: str = "parallel"
    stage_fields: dict = field(default_factory=dict)  # by stage index: more fields
    rate: float = 0.0
    openings: int = 1
    load: dict = field(default_factory=dict)
    inflow: dict = field(default_factory=dict)
    storage: dict = field(default_factory=dict)
    filling_storage: dict = field(default_factory=dict)
    productivity: dict = field(default_factory=dict)  # by hydro; 1 where not given
    penalties: dict = field(default_factory=dict)  # over the hydro section
    deficit: list | None = None
    method: str = "penalty"
    iterations: int = 20
    forward_passes: int = 1
    scenarios: int = 1
    tables: dict = field(default_factory=dict)  # path without suffix: list of row dictionaries
    documents: dict = field(default_factory=dict)  # path: JSON content

    def write(self, folder):
        """Write the case directory."""
        for part in ("system", "scenarios", "constraints"):
            (Path(folder) / part).mkdir(parents=True, exist_ok=True)
        tables = {name: rows for name, rows in {**self._tables(), **self.tables}.items() if rows}
        return write_files(folder, {**self.default_documents(), **self.documents}, tables)

    def default_documents(self):
        """Return all JSON files by path, before `documents` replaces some of them."""
        hydro_prices = {**PENALTIES["hydro"], **self.penalties}
        bus_prices = PENALTIES["bus"] | ({"deficit_segments": self.deficit} if self.deficit else {})
        return {
            "config.json": self._config(),
            "stages.json": self.stages_document(),
            "initial_conditions.json": {
                "storage": volumes(self.storage),
                "filling_storage": volumes(self.filling_storage),
            },
            "penalties.json": PENALTIES | {"hydro": hydro_prices, "bus": bus_prices},
            "system/buses.json": {"buses": [entity(number, "B") for number in range(self.buses)]},
            "system/lines.json": {"lines": self.lines},
            "system/hydros.json": {"hydros": self.hydros},
            "system/thermals.json": {"thermals": self.thermals},
            "system/pumping_stations.json": {"pumping_stations": self.pumps},
            "system/energy_contracts.json": {"contracts": self.contracts},
            "system/non_controllable_sources.json": {"non_controllable_sources": self.sources},
            "system/hydro_production_models.json": {"production_models": self._production()},
        }

    def _config(self):
        sampled = {"method": "sampled"}
        return {
            "training": {
                "selection": sampled | {"forward_passes": self.forward_passes},
                "stopping_rules": [{"type": "iteration_limit", "limit": self.iterations}],
            },
            "simulation": {"enabled": True, "selection": sampled | {"num_scenarios": self.scenarios}},
            "modeling": {"inflow_non_negativity": {"method": self.method}},
        }

    def stages_document(self):
        """Return stages.json."""
        return {
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": self.rate},
            "stages": [
                {
                    "id": number,
                    "start_date": STARTS[number],
                    "end_date": STARTS[number + 1],
                    "blocks": [
                        {"id": block, "name": f"K{block}", "hours": hours} for block, hours in enumerate(self.hours)
                    ],
                    "num_openings": self.openings,
                    "block_mode": self.block_mode,
                    **self.stage_fields.get(number, {}),
                }
                for number in range(self.stages)
            ],
        }

    def _production(self):
        return [
            {
                "hydro_id": plant["id"],
                "selection_mode": "stage_ranges",
                "stage_ranges": [self._range(plant)],
            }
            for plant in self.hydros
        ]

    def _range(self, plant):
        whole = {"start_stage_id": 0, "end_stage_id": None, "model": plant["generation"]["model"]}
        if plant["generation"]["model"] == "fpha":
            return whole | {"fpha_config": {"source": "precomputed"}}
        return whole | {"productivity_mw_per_m3s": self.productivity.get(plant["id"], 1.0)}

    def _tables(self):
        return {
            "scenarios/inflow_seasonal_stats": self._statistics(self.inflow, "hydro_id", "mean_m3s", "std_m3s"),
            "scenarios/load_seasonal_stats": self._statistics(self.load, "bus_id", "mean_mw", "std_mw"),
        }

    def _statistics(self, given, key, mean, std):
        rows = []
        for number, values in given.items():
            per_stage = values if isinstance(values, list) else [values] * self.stages
            for stage, value in enumerate(per_stage):
                pair = value if isinstance(value, tuple) else (value, 0.0)
                rows.append({key: number, "stage_id": stage, mean: float(pair[0]), std: float(pair[1])})
        return rows


def volumes(by_hydro):
    """Return entries of initial_conditions.json."""
    return [{"hydro_id": number, "value_hm3": value} for number, value in by_hydro.items()]


def months(label="month"):
    """Return season_definitions of stages.json: twelve months."""
    seasons = [{"id": month, "label": f"{label} {month + 1}", "month_start": month + 1} for month in range(12)]
    return {"cycle_type": "monthly", "seasons": seasons}


def write_files(folder, documents, tables):
    """Write JSON files by path, and tables (rows, or lists by column) by path without suffix."""
    folder = Path(folder)
    for path, content in documents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content))
    for name, content in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(as_table(content), folder / f"{name}.parquet", compression="zstd")
    return folder


def as_table(content):
    """Return rows, or lists by column, as a table with the types of the format; missing columns of a row are null."""
    if not isinstance(content, Mapping):
        names = list(dict.fromkeys(name for row in content for name in row))
        content = {name: [row.get(name) for row in content] for name in names}
    return pa.table({name: pa.array(values, column_type(name)) for name, values in content.items()})


def rows_of(names, rows):
    """Return tuples as lists by column; `names` are those of the columns, separated by spaces."""
    return dict(zip(names.split(), map(list, zip(*rows, strict=True)), strict=True))


def column_type(name):
    """Return the type of a column by its name: ids and counts are integers, dates are dates, all else is float64."""
    if name.endswith("_date"):
        return pa.date32()
    return pa.int32() if name.endswith("_id") else INTEGERS.get(name, pa.float64())


# Plants and their tables that several tests share.

THERMALS = [thermal(0, 20.0, 20.0), thermal(1, 60.0, 25.0), thermal(2, 180.0, 15.0)]
GEOMETRY = [
    {"hydro_id": number, "volume_hm3": volume, "height_m": height, "area_km2": area}
    for number in (0, 1)
    for volume, height, area in ((0.0, 100.0, 1.0), (40.0, 110.0, 3.0), (100.0, 120.0, 8.0))
]
PLANES = [
    {"hydro_id": 0, "plane_id": number, "gamma_0": constant, "gamma_v": v, "gamma_q": q, "gamma_s": s, "kappa": kappa}
    for number, (constant, v, q, s, kappa) in enumerate(
        ((1.0, 0.02, 0.8, -0.01, 1.0), (6.0, 0.05, 0.5, 0.0, 0.9), (10.0, 0.06, 0.2, -0.02, 0.95))
    )
]
PRODUCTIVITY = [
    {
        "hydro_id": 0,
        "stage_id": None,
        "equivalent_productivity_mw_per_m3s": 1.0,
        "reference_outflow_m3s": None,
        "specific_productivity_mw_per_m3s_per_m": None,
    }
]
