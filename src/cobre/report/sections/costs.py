"""The section on costs of the simulated scenarios."""

import numpy as np

from cobre.core.arrays import Floats
from cobre.core.confidence import half_width_95
from cobre.report.bar_charts import histogram_chart
from cobre.report.chart import Chart
from cobre.report.data_table import DataTable, TableColumn
from cobre.report.run_folder import RunFolder
from cobre.report.scenario_statistics import PERCENTILES
from cobre.report.section import Section
from cobre.report.simulated import Simulated
from cobre.runs.formatting import scale_for

HOW_TO_READ = "Number of simulated scenarios by their total cost over the horizon."


def costs(run: RunFolder) -> Section | None:
    """Histogram, components and spread of costs; None without a simulation."""
    simulated = run.simulated
    if simulated is None:
        return None
    by_scenario = simulated.scenario_costs()
    lines = {"mean": float(by_scenario.mean())}
    if len(run.bounds):
        lines["lower bound"] = float(run.bounds.lower[-1])
    histogram = histogram_chart(by_scenario, lines, "cost-histogram", "Cost of a scenario").explained(HOW_TO_READ)
    parts: list[Chart | DataTable] = [histogram, _components(simulated), _spread(by_scenario, run.controlled_cost)]
    intro = f"Costs of {len(by_scenario)} simulated scenarios, discounted to the first stage."
    return Section("costs", "Costs", parts, intro)


def _spread(by_scenario: Floats, controlled: tuple[float, float] | None) -> DataTable:
    deviation = float(by_scenario.std(ddof=1)) if len(by_scenario) > 1 else None
    found: dict[str, float | None] = {
        "mean": float(by_scenario.mean()),
        "± 95 %": None if deviation is None else half_width_95(deviation, len(by_scenario)),
        **({} if controlled is None else {"controlled mean": controlled[0], "its ± 95 %": controlled[1]}),
        "standard deviation": deviation,
        "cheapest": float(by_scenario.min()),
        **{f"{p} %": float(np.percentile(by_scenario, p)) for p in PERCENTILES},
        "most expensive": float(by_scenario.max()),
    }
    divisor, unit = scale_for(float(np.abs(by_scenario).max()), "$")
    columns = [TableColumn(title, "number", divisor) for title in found]
    note = (
        "± is the half-width of the mean's 95 % confidence interval. "
        "A column such as 95 % is that percentile over the scenarios."
    )
    if controlled is not None:
        note += (
            " The controlled mean has the same expectation: what the openings that each scenario drew did to its cost, "
            "beside the mean of all openings, is taken out."
        )
    return DataTable(
        "cost-spread", f"Spread over scenarios ({unit})", columns, [tuple(found.values())], note, is_wide=True
    )


def _components(simulated: Simulated) -> DataTable:
    means = simulated.component_costs()
    total = sum(means.values())
    ordered = sorted(means.items(), key=lambda entry: -abs(entry[1]))
    rows = [(title, mean, mean / total if total else None) for title, mean in ordered]
    columns = (TableColumn("component"), TableColumn("mean", "money"), TableColumn("share", "percent"))
    note = "Totals over all stages, averaged over scenarios. Components below 0.01 $ are left out."
    return DataTable("cost-components", "Cost components", columns, rows, note)
