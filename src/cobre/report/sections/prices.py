"""Spot prices, bus by bus."""

from cobre.report.chart import Chart
from cobre.report.fan_charts import fan_chart, panels_chart
from cobre.report.palette import PURPLE
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.sections.choice import MOST_PANELS, largest_first, what_is_shown

FEW = 4
INTRO = "What one more MWh would cost at a bus: the average over a stage's hours."

WORDS = "Where the bands are wide, the price hangs on inflows and other things that nobody knows yet."


def prices(run: RunFolder) -> Section | None:
    """Large plots for a few buses, small ones for many."""
    simulated = run.simulated
    if simulated is None or not simulated.has("spot_price"):
        return None
    fans = largest_first(simulated.cube("spot_price"), "buses", run.study)
    if len(fans) <= FEW:
        parts: list[Chart] = [
            fan_chart(named.fan, f"spot-price-{place}", f"Spot price, {named.name}", "$/MWh", PURPLE).explained(WORDS)
            for place, named in enumerate(fans)
        ]
    else:
        shown = fans[:MOST_PANELS]
        note = what_is_shown(len(shown), len(fans), "buses", "buses")
        chart = panels_chart(shown, "spot-prices", "Spot prices by bus ($/MWh)", "$/MWh", PURPLE, note)
        parts = [chart.explained(WORDS)]
    return Section("prices", "Prices", parts, INTRO)
