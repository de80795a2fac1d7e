"""The section on generation by source, and on deficits."""

from collections.abc import Mapping

import numpy as np

from cobre.core.indicators import NEGLIGIBLE
from cobre.report.bar_charts import StackLayer, stages_chart
from cobre.report.chart import Chart
from cobre.report.data_table import DataTable, TableColumn
from cobre.report.fan_charts import fan_chart
from cobre.report.palette import BLUE, GREEN, INK, ORANGE, VERMILLION
from cobre.report.quantities import QUANTITIES
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.simulated import Fan, Simulated
from cobre.report.study_facts import StudyFacts
from cobre.runs.formatting import scale_for

SOURCES: Mapping[str, tuple[str, str]] = {
    "hydro_generation": ("hydro", BLUE),
    "non_controllable_generation": ("wind, solar and other", GREEN),
    "thermal_generation": ("thermal", ORANGE),
    "deficit": ("not served", VERMILLION),
}
INTRO = "Power is averaged over the hours of a stage."
MIX_EXPLANATION = "Generation by source. The dashed line is the load; the part that is not covered is not served."
FAN_EXPLANATION = "Sum over all plants. Half of the scenarios lie in the dark band, 90 % in both bands."


def generation(run: RunFolder) -> Section | None:
    """Generation by source, a fan for each source, thermal plants and deficits; None without simulated loads."""
    simulated = run.simulated
    if simulated is None or not simulated.has("load"):
        return None
    fans = [
        _fan(simulated, name, colour)
        for name, (_, colour) in SOURCES.items()
        if name != "deficit" and simulated.has(name)
    ]
    parts: list[Chart | DataTable] = [_mix(simulated), *fans, _deficits(simulated, run.study)]
    if simulated.has("thermal_generation"):
        parts.append(_thermals(simulated, run.study))
    return Section("generation", "Generation", parts, INTRO)


def _mix(simulated: Simulated) -> Chart:
    layers = [
        StackLayer(title, colour, simulated.cube(name).total().mean(axis=0))
        for name, (title, colour) in SOURCES.items()
        if simulated.has(name)
    ]
    load = simulated.cube("load")
    line = StackLayer("load", INK, load.total().mean(axis=0))
    chart = stages_chart(layers, line, load.labels, "mix", "Generation by source, mean over scenarios", "MW")
    return chart.explained(MIX_EXPLANATION)


def _fan(simulated: Simulated, name: str, colour: str) -> Chart:
    cube = simulated.cube(name)
    fan = Fan.over_scenarios(cube.total(), cube.labels)
    return fan_chart(fan, name.replace("_", "-"), QUANTITIES[name].title, "MW", colour).explained(FAN_EXPLANATION)


def _thermals(simulated: Simulated, study: StudyFacts) -> DataTable:
    rows = simulated.rows("thermals", "thermal_id")
    energy = rows.total("generation_mwh").sum(axis=1) / 1000
    money = rows.total("generation_cost").sum(axis=1)
    power = simulated.cube("thermal_generation").values.mean(axis=(0, 1))
    low, high = np.percentile(energy, (5, 95), axis=0)
    order = np.argsort(-energy.mean(axis=0), kind="stable")
    numbers = (power, energy.mean(axis=0), low, high, money.mean(axis=0))
    found: list[tuple[str | float, ...]] = [
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
    return DataTable("thermals", "Thermal plants", columns, found, note, is_wide=True, kind="thermals")


def _deficits(simulated: Simulated, study: StudyFacts) -> DataTable:
    rows = simulated.rows("buses", "bus_id")
    missing = rows.total("deficit_mwh")
    load = rows.total("load_mwh").sum(axis=1).mean(axis=0)
    labels = simulated.cube("deficit").labels
    found = []
    for e, id_ in enumerate(rows.entities):
        by_scenario = missing[:, :, e].sum(axis=1)
        worst = int(missing[:, :, e].mean(axis=0).argmax())
        found.append(
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
    return DataTable("deficits", "Deficit", columns, found, note, is_wide=True, kind="buses")
