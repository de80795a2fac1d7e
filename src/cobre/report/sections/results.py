"""Sections on simulated results: costs, prices, water, generation, every plant, bus and line, and the map."""

import math
from collections.abc import Mapping

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import half_width_95
from cobre.report.charts import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Chart,
    StackLayer,
    histogram_chart,
    stages_chart,
)
from cobre.report.explorer_data import Explorer
from cobre.report.run_folder import RunFolder
from cobre.report.section import Cell, DataTable, Section, TableColumn
from cobre.report.simulated import PERCENTILES, QUANTITIES, Fan, SimulationTables, congestion, fan_chart
from cobre.report.stored_study import StoredStudy
from cobre.report.system_map import system_map
from cobre.runs.labels import NEGLIGIBLE
from cobre.text import scale_for


def costs(run: RunFolder) -> Section | None:
    """Return histogram, components and spread of costs; None without a simulation."""
    simulated = run.simulated
    if simulated is None:
        return None
    by_scenario = simulated.scenario_costs()
    lines = {"mean": float(by_scenario.mean())}
    if len(run.bounds):
        lines["lower bound"] = float(run.bounds.lower[-1])
    parts: list[Chart | DataTable] = [
        histogram_chart(by_scenario, lines, "cost-histogram", "Cost of a scenario").explained(
            "Number of simulated scenarios by their total cost over the horizon."
        ),
        _components(simulated),
        _spread(by_scenario, run.controlled_cost),
    ]
    intro = f"Costs of {len(by_scenario)} simulated scenarios, discounted to the first stage."
    return Section("costs", "Costs", parts, intro)


def _spread(by_scenario: Floats, controlled: tuple[float, float] | None) -> DataTable:
    deviation = float(by_scenario.std(ddof=1)) if len(by_scenario) > 1 else None
    statistics: dict[str, float | None] = {
        "mean": float(by_scenario.mean()),
        "± 95 %": None if deviation is None else half_width_95(deviation, len(by_scenario)),
        **({} if controlled is None else {"controlled mean": controlled[0], "its ± 95 %": controlled[1]}),
        "standard deviation": deviation,
        "cheapest": float(by_scenario.min()),
        **{f"{p} %": float(np.percentile(by_scenario, p)) for p in PERCENTILES},
        "most expensive": float(by_scenario.max()),
    }
    divisor, unit = scale_for(float(np.abs(by_scenario).max()), "$")
    columns = [TableColumn(title, "number", divisor) for title in statistics]
    note = (
        "± is the half-width of the mean's 95 % confidence interval. "
        "A column such as 95 % is that percentile over the scenarios."
    )
    if controlled is not None:
        note += (
            " The controlled mean has the same expectation: what the openings that each scenario drew did to its cost, "
            "compared with the mean of all openings, is taken out."
        )
    return DataTable(
        "cost-spread", f"Spread over scenarios ({unit})", columns, [tuple(statistics.values())], note, is_wide=True
    )


def _components(simulated: SimulationTables) -> DataTable:
    means = simulated.component_costs()
    total = sum(means.values())
    ordered = sorted(means.items(), key=lambda entry: -abs(entry[1]))
    rows = [(title, mean, mean / total if total else None) for title, mean in ordered]
    columns = (TableColumn("component"), TableColumn("mean", "money"), TableColumn("share", "percent"))
    note = "Totals over all stages, averaged over scenarios. Components below 0.01 $ are left out."
    return DataTable("cost-components", "Cost components", columns, rows, note)


MAX_BUSES = 6


def prices(run: RunFolder) -> Section | None:
    """Draw a fan of the spot price for the first `MAX_BUSES` buses; the others are in the explorer."""
    simulated = run.simulated
    if simulated is None or not simulated.has("spot_price"):
        return None
    cube = simulated.cube("spot_price")
    named = [(run.study.entity_name("buses", id_), cube.of(id_)) for id_ in cube.entities[:MAX_BUSES]]
    parts = [
        fan_chart(
            Fan.over_scenarios(values, cube.labels), f"spot-price-{index}", f"Spot price, {name}", "$/MWh", PURPLE
        ).explained("Wide bands mean that the price depends on uncertain inflows and loads.")
        for index, (name, values) in enumerate(named)
    ]
    num_others = len(cube.entities) - len(parts)
    hint = f" {num_others} more buses are under Plants, buses and lines." if num_others > 0 else ""
    intro = f"The cost of one more MWh at a bus, averaged over the hours of a stage.{hint}"
    return Section("prices", "Prices", parts, intro)


# The section on stored water and inflow of all plants.


def water(run: RunFolder) -> Section | None:
    """Draw stored water and natural inflow of the whole system; None without simulated hydro plants."""
    simulated = run.simulated
    if simulated is None or not simulated.has("storage"):
        return None
    parts = [
        fan_chart(_total(simulated, "storage"), "storage", "Stored water, all reservoirs", "hm³").explained(
            "Half of the scenarios are in the dark band, 90 % in both bands."
        ),
        fan_chart(_total(simulated, "inflow"), "inflow", "Natural inflow, all plants", "m³/s", SKY).explained(
            "Natural inflow, summed over all plants."
        ),
    ]
    intro = "At the end of each stage, over the simulated scenarios. Single plants are under Plants, buses and lines."
    return Section("water", "Water", parts, intro)


def _total(simulated: SimulationTables, quantity: str) -> Fan:
    cube = simulated.cube(quantity)
    return Fan.over_scenarios(cube.total(), cube.labels)


# The section on generation by source, and on deficits.

SOURCES: Mapping[str, tuple[str, str]] = {
    "hydro_generation": ("hydro", BLUE),
    "non_controllable_generation": ("wind, solar and other", GREEN),
    "thermal_generation": ("thermal", ORANGE),
    "deficit": ("not served", VERMILLION),
}


def generation(run: RunFolder) -> Section | None:
    """Draw generation by source, a fan for each source, thermal plants and deficits; None without simulated loads."""
    simulated = run.simulated
    if simulated is None or not simulated.has("load"):
        return None
    fans = [
        fan_chart(_total(simulated, name), name.replace("_", "-"), QUANTITIES[name].title, "MW", colour).explained(
            "Sum over all plants. Half of the scenarios are in the dark band, 90 % in both bands."
        )
        for name, (_, colour) in SOURCES.items()
        if name != "deficit" and simulated.has(name)
    ]
    parts: list[Chart | DataTable] = [_generation_chart(simulated), *fans, _deficits(simulated, run.study)]
    if simulated.has("thermal_generation"):
        parts.append(_thermals(simulated, run.study))
    return Section("generation", "Generation", parts, "Power is averaged over the hours of a stage.")


def _generation_chart(simulated: SimulationTables) -> Chart:
    layers = [
        StackLayer(title, colour, simulated.cube(name).total().mean(axis=0))
        for name, (title, colour) in SOURCES.items()
        if simulated.has(name)
    ]
    load = simulated.cube("load")
    line = StackLayer("load", INK, load.total().mean(axis=0))
    chart = stages_chart(layers, line, load.labels, "mix", "Generation by source, mean over scenarios", "MW")
    return chart.explained(
        "Generation by source. The dashed line is the load; the part that is not covered is not served."
    )


def _thermals(simulated: SimulationTables, study: StoredStudy) -> DataTable:
    rows = simulated.rows("thermals")
    energy = rows.total("generation_mwh").sum(axis=1) / 1000
    money = rows.total("generation_cost").sum(axis=1)
    power = simulated.cube("thermal_generation").values.mean(axis=(0, 1))
    low, high = np.percentile(energy, (5, 95), axis=0)
    order = np.argsort(-energy.mean(axis=0), kind="stable")
    numbers = (power, energy.mean(axis=0), low, high, money.mean(axis=0))
    table_rows: list[tuple[str | float, ...]] = [
        (study.entity_name("thermals", rows.entities[e]), *(float(values[e]) for values in numbers)) for e in order
    ]
    divisor, unit = scale_for(float(money.mean(axis=0).max()), "$")
    columns = (
        TableColumn("plant"),
        TableColumn("mean MW", "number"),
        TableColumn("mean GWh", "number"),
        TableColumn("5 % GWh", "number"),
        TableColumn("95 % GWh", "number"),
        TableColumn(f"mean cost, {unit}", "number", divisor),
    )
    note = (
        "Energy and cost of the whole horizon; costs are not discounted. "
        "5 % and 95 % are percentiles over the scenarios."
    )
    return DataTable("thermals", "Thermal plants", columns, table_rows, note, is_wide=True, entity_kind="thermals")


def _deficits(simulated: SimulationTables, study: StoredStudy) -> DataTable:
    rows = simulated.rows("buses")
    missing = rows.total("deficit_mwh")
    load = rows.total("load_mwh").sum(axis=1).mean(axis=0)
    labels = simulated.cube("deficit").labels
    table_rows = []
    for e, id_ in enumerate(rows.entities):
        by_scenario = missing[:, :, e].sum(axis=1)
        worst = int(missing[:, :, e].mean(axis=0).argmax())
        table_rows.append(
            (
                study.entity_name("buses", id_),
                float((by_scenario > NEGLIGIBLE).mean()),
                float(by_scenario.mean()),
                float(by_scenario.mean() / load[e]) if load[e] > 0 else None,
                float(by_scenario.max()),
                labels[worst] if by_scenario.max() > NEGLIGIBLE else None,
            )
        )
    columns = (
        TableColumn("bus"),
        TableColumn("scenarios with deficit", "percent"),
        TableColumn("mean MWh", "number"),
        TableColumn("share of load", "percent"),
        TableColumn("worst scenario, MWh", "number"),
        TableColumn("worst stage"),
    )
    note = (
        f"Energy of the whole horizon. A scenario has a deficit if more than {NEGLIGIBLE:g} MWh is not served; less "
        "is within the tolerance of the LPs. The worst stage is the one with the largest mean deficit."
    )
    return DataTable("deficits", "Deficit", columns, table_rows, note, is_wide=True, entity_kind="buses")


# Tables of all hydro plants and all lines; thermal plants and buses have theirs under Generation.

HYDRO_COLUMNS = (
    TableColumn("plant"),
    TableColumn("bus"),
    TableColumn("flows to"),
    TableColumn("mean hm³", "number"),
    TableColumn("full", "percent"),
    TableColumn("mean MW", "number"),
    TableColumn("spilled m³/s", "number"),
    TableColumn("scenarios that spill", "percent"),
    TableColumn("water value, $/hm³", "number"),
    TableColumn("scenarios with violations", "percent"),
)

LINE_COLUMNS = (
    TableColumn("line"),
    TableColumn("from"),
    TableColumn("to"),
    TableColumn("mean MW", "number"),
    TableColumn("at the limit", "percent"),
    TableColumn("at the reverse limit", "percent"),
)


def hydro_table(study: StoredStudy, explorer: Explorer) -> DataTable | None:
    """Return a row for each plant, in the order of the case."""
    if "storage" not in explorer.summaries:
        return None
    ids = explorer.simulated.rows("hydros").entities
    violated = _violation_shares(explorer, len(ids))
    rows = [
        (
            study.entity_name("hydros", id_),
            _buses(study, id_),
            _downstream_name(study, id_),
            _mean(explorer, "storage", index),
            _fullness(study, id_, _mean(explorer, "storage", index)),
            _mean(explorer, "hydro_generation", index),
            _mean(explorer, "spillage", index),
            float(explorer.summaries["spillage"].scenario_share[index]),
            _mean(explorer, "water_value", index),
            float(violated[index]),
        )
        for index, id_ in enumerate(ids)
    ]
    note = (
        "Means over all stages and scenarios. Full is the mean position in the reservoir's range, from minimum to "
        "maximum storage. Violations are limits that were violated at a penalty: storage, filling, outflow, turbined "
        "flow, generation, evaporation, withdrawal, and negative inflows."
    )
    return DataTable("hydros", "Hydro plants", HYDRO_COLUMNS, rows, note, is_wide=True, entity_kind="hydros")


def line_table(study: StoredStudy, explorer: Explorer) -> DataTable | None:
    """Return a row for each line, in the order of the case."""
    if "line_flow" not in explorer.summaries:
        return None
    rows = explorer.simulated.rows("exchanges")
    hours = explorer.simulated.hours(rows)
    shares = congestion(study, rows, hours)
    weights = hours.sum(axis=1) / hours.sum()
    table_rows = [
        (
            study.entity_name("lines", id_),
            *(_bus(study, study.entity("lines", id_).get(end)) for end in ("source_bus_id", "target_bus_id")),
            _mean(explorer, "line_flow", index),
            *((None, None) if shares is None else (float(share @ weights) for share in shares[index])),
        )
        for index, id_ in enumerate(rows.entities)
    ]
    note = (
        "Means over all stages and scenarios; negative flows run from the second bus to the first. Shares are of hours "
        "and scenarios."
    )
    return DataTable("lines", "Lines", LINE_COLUMNS, table_rows, note, is_wide=True, entity_kind="lines")


def _mean(explorer: Explorer, name: str, index: int) -> float | None:
    return float(explorer.summaries[name].mean[index]) if name in explorer.summaries else None


def _violation_shares(explorer: Explorer, count: int) -> Floats:
    """Return, by plant, the share of scenarios with a violation of any limit."""
    violations = [
        explorer.summaries[name].is_nonzero
        for name, quantity in QUANTITIES.items()
        if quantity.is_violation and name in explorer.summaries
    ]
    return np.asarray(np.any(violations, axis=0).mean(axis=0)) if violations else np.zeros(count)


def _buses(study: StoredStudy, id_: int) -> Cell:
    buses = study.entity("hydros", id_).get("bus_ids")
    return ", ".join(str(_bus(study, bus)) for bus in buses) if isinstance(buses, list) else None


def _bus(study: StoredStudy, id_: object) -> Cell:
    return study.entity_name("buses", id_) if isinstance(id_, int) else None


def _downstream_name(study: StoredStudy, id_: int) -> Cell:
    downstream = study.entity("hydros", id_).get("downstream_id")
    return study.entity_name("hydros", downstream) if isinstance(downstream, int) else None


def _fullness(study: StoredStudy, id_: int, storage: float | None) -> float | None:
    """Return the mean position in the storage range, 0 to 1; None without storage, or if study.json lacks the range."""
    plant = study.entity("hydros", id_)
    low, high = plant.get("min_storage_hm3"), plant.get("max_storage_hm3")
    if storage is None or not isinstance(low, int | float) or not isinstance(high, int | float) or high <= low:
        return None
    position = (storage - low) / (high - low)
    return position if math.isfinite(position) else None


# The section on every plant, bus and line; the script of the page finds and draws them.


def explore(run: RunFolder, explorer: Explorer) -> Section | None:
    """Return a frame, which the script fills from the data of the page, and tables of hydro plants and lines."""
    if not explorer.kinds():
        return None
    tables = [table for make in (hydro_table, line_table) if (table := make(run.study, explorer)) is not None]
    intro = (
        "Search for a plant, bus or line to see its percentiles over all simulated scenarios, single scenarios and "
        "blocks. Values are rounded to four digits; the Parquet files have full precision."
    )
    return Section("explore", "Plants, buses and lines", [_FRAME, *tables], intro)


_FRAME = """<div class="card wide explorer" id="explorer">
<div class="finder">
<label for="find">Search</label>
<input type="search" id="find" autocomplete="off" spellcheck="false" aria-controls="found"
  aria-describedby="found-count">
<p id="found-count" class="note" role="status" aria-live="polite"></p>
<label for="found">Choose</label>
<select id="found" size="12"></select>
<label for="scenario">Single scenario</label>
<select id="scenario"></select>
<label for="blocks">Blocks</label>
<select id="blocks"><option value="">averages of the stage</option><option value="each">each block</option></select>
<button type="button" id="entity-csv" class="quiet">Download all as CSV</button>
</div>
<div class="found">
<h3 id="entity-name" tabindex="-1"></h3>
<p id="entity-facts" class="explanation"></p>
<div class="grid" id="entity-charts" aria-live="off"></div>
<p id="entity-zeros" class="note"></p>
</div>
</div>"""


TOOLS = (
    '<div class="tools"><button type="button" class="link" data-zoom="1.4">Larger</button>'
    '<button type="button" class="link" data-zoom="0.714">Smaller</button>'
    '<button type="button" class="link" data-zoom="0">Fit</button></div>'
)


def system(run: RunFolder) -> Section | None:
    """Draw the map of the system; None if study.json lists no entities."""
    drawn = system_map(run.study, with_links=True)
    if drawn is None:
        return None
    frame = '<div class="map-frame" tabindex="0" role="region" aria-label="Map of the system">'
    card = f'<figure class="card wide" id="system-map">{TOOLS}{frame}{drawn.svg}</div></figure>'
    intro = (
        "Buses and lines (capacity in each direction), and below them the cascades; rivers flow to the right. A disc "
        "is a reservoir, sized by its volume; a ring is a run-of-river plant; colours are those of the buses. Click a "
        "plant, bus or line to see its results."
    )
    return Section("system", "Map", [card], intro)
